"""Who reads whom in the Predictive Vision Model of 2016, by the rules of its configuration."""

import numpy as np


def near(n, x, y, radius, exclude_self):
    """Places of an n x n grid within `radius` of (x, y)."""
    places = [(i, j) for i in range(n) for j in range(n) if (i - x) ** 2 + (j - y) ** 2 <= radius * radius]
    return [place for place in places if not (exclude_self and place == (x, y))]


def below(n_low, n_up, x, y, size, radius):
    """Places of an n_low x n_low grid that (x, y) of an n_up x n_up grid above looks at.

    Rounding comes last and is towards 0: a block larger than the grid (4 on 3: -0.5, 0.5, 1.5, 2.5) has its first row
    and column twice. Then a source is listed twice, too.
    """

    def place(at, offset):
        begin = (n_low - size) / (n_up - 1) * at if n_up > 1 else (n_low - size) / 2
        return int(begin + offset)

    middle = (size - 1) / 2
    offsets = [(i, j) for i in range(size) for j in range(size)]
    block = [(place(x, i), place(y, j)) for i, j in offsets if (i - middle) ** 2 + (j - middle) ** 2 <= radius * radius]
    return [(i, j) for i, j in block if 0 <= i < n_low and 0 <= j < n_low]


class Wiring:
    """Who reads whom, as numbers of units: `signals` (none for layer 0, which reads pixels) and `context`."""

    def __init__(self, config, lateral_bug):
        self.shapes = [int(n) for n in config["layer_shapes"]]
        self.base = np.concatenate([[0], np.cumsum(np.square(self.shapes))]).tolist()
        self.places = [(layer, x, y) for layer, n in enumerate(self.shapes) for x in range(n) for y in range(n)]
        size, radius = int(config["fan_in_square_size"]), int(float(config["fan_in_radius"]))
        self.signals = [
            self.ids(layer - 1, below(self.shapes[layer - 1], self.shapes[layer], x, y, size, radius)) if layer else []
            for layer, x, y in self.places
        ]
        self.context = []  # (source, is it feedback) for each unit, in the order of its inputs
        for layer, x, y in self.places:
            beside = near(
                self.shapes[layer], x, y, float(config["lateral_radius"]), config["context_exclude_self"] == "1"
            )
            # The original forgets where the layer begins, so the neighbours are units of layer 0 with their numbers.
            first = 0 if lateral_bug else self.base[layer]
            self.context.append([(first + i * self.shapes[layer] + j, False) for i, j in beside])
        for up, (layer, x, y) in enumerate(self.places):
            for source in self.signals[up]:
                self.context[source].append((up, True))
            if layer > 1 and config["send_context_two_layers_back"] == "1":
                low = self.shapes[layer - 2]
                for source in self.ids(layer - 2, below(low, self.shapes[layer], x, y, 2 * size, 2 * radius)):
                    self.context[source].append((up, True))
        if config["last_layer_context_to_all"] == "1":  # also to those that have it as feedback already
            for unit in range(self.base[-2]):
                self.context[unit] += [(top, True) for top in range(self.base[-2], self.base[-1])]

    def ids(self, layer, places):
        return [self.base[layer] + i * self.shapes[layer] + j for i, j in places]
