"""The fixed tree: the same sums, in the same order, whoever adds which part."""

import itertools

import numpy as np
import pytest

from hybrid.trunk import Node, Sum, nodes


class Words:
    """A part that says how it was added."""

    def __init__(self, said):
        self.said = said

    def take(self, other):
        self.said = f"({self.said} {other.said})"


def by_definition(first, size, leaves):
    """The node of so many leaves from `first` on, halved down to single ones; "" beyond the last leaf."""
    if first >= leaves:
        return ""
    if size == 1:
        return str(first)
    halves = [by_definition(at, size // 2, leaves) for at in (first, first + size // 2)]
    return f"({halves[0]} {halves[1]})" if halves[1] else halves[0]


def added(parts):
    """What a Sum makes of (node, words), at most so many of them kept at a time."""
    found, most = Sum(Words.take), 0
    for node, words in parts:
        found.push(node, Words(words))
        most = max(most, len(found))
    return [part.said for part in found.close()], most


def test_leaves_that_come_one_by_one_are_added_as_the_definition_says():
    assert by_definition(0, 64, 7) == "(((0 1) (2 3)) ((4 5) 6))"
    for leaves in range(1, 34):
        found, most = added((Node(leaf, 1), str(leaf)) for leaf in range(leaves))
        assert found == [by_definition(0, 64, leaves)]
        assert most <= np.log2(leaves) + 1


@pytest.mark.parametrize(("leaves", "cuts"), [(1, 1), (2, 3), (5, 2), (8, 4), (13, 3), (24, 4)])
def test_any_runs_of_leaves_go_together_to_the_same_sum(leaves, cuts):
    """Where fewer leaves come than there could be, too."""
    rng = np.random.default_rng([leaves, cuts])
    for come in range(1, leaves + 1):
        ends = [0, *sorted(rng.integers(0, leaves + 1, cuts - 1).tolist()), leaves]
        parts = []
        for first, last in itertools.pairwise(ends):
            for node in nodes(first, last):
                if node.first < come:
                    inside = range(node.first, min(node.first + node.size, come))
                    (words,), _ = added((Node(leaf, 1), str(leaf)) for leaf in inside)
                    parts.append((node, words))
        assert added(parts)[0] == [by_definition(0, 64, come)]


def test_parts_from_a_place_on_become_one():
    found = Sum(Words.take)
    for leaf in (3, 4, 5, 6):
        found.push(Node(leaf, 1), Words(str(leaf)))
    assert [part.said for part in found.close(4)] == ["3", "((4 5) 6)"]
    assert len(found) == 0
