"""What is expected of classes that are met by Zipf's law, class k as often as 1 / k: sums in closed form."""

import math

EULER, STIELTJES = 0.57721566490153286, -0.07281584548367672


def total(classes: float) -> float:
    """1 + 1/2 + ... + 1/classes."""
    return math.log(classes) + EULER + 1 / (2 * classes)


def share(first: float, last: float, classes: float) -> float:
    """How likely a class from behind `first` to `last` is, of so many."""
    return (total(last) - (total(first) if first else 0.0)) / total(classes)


def path(classes: float) -> float:
    """Nodes that an example meets in a Huffman tree: the entropy of a class in bits, which they exceed by a few hundredths."""
    log = math.log(classes)
    mean = (log**2 / 2 + STIELTJES + log / (2 * classes)) / total(classes)
    return (math.log(total(classes)) + mean) / math.log(2)


def beyond(classes: float, nodes: float) -> float:
    """How many of these lie behind the first `nodes` of the tree, breadth first: those at a depth of more than log2 `nodes`."""
    below = math.log(max(classes * total(classes) / nodes, 1.0))
    return below**2 / (2 * total(classes) * math.log(2))
