"""Where classes that are added stand, and that all other paths stay as they are."""

import numpy as np
import pytest

from cpu.tree import growth
from cpu.tree.tree import balanced, huffman, of_pointers, path

COUNTS = np.array([8.0, 4, 2, 5, 4, 3, 9])  # class 2 is the rarest


@pytest.mark.parametrize("more", [[7.0], [3.0, 0, 5]])
def test_only_the_path_of_the_rarest_class_gets_longer(more):
    old, added = huffman(COUNTS), np.array(more)
    made = growth.grown(old, COUNTS, added, 10)
    new = of_pointers(made.leaf_up, made.node_up, np.concatenate([COUNTS, added]))
    assert (np.diff(new.node_up) > 0).all() and new.leaf_up.dtype == new.node_up.dtype == np.int32
    kept = [[(int(made.place[node]), turn) for node, turn in path(old, leaf)] for leaf in range(7)]
    (joint, left) = path(new, 2)[-1]
    assert left == 0 and joint not in made.place and path(new, 2)[:-1] == kept[2]
    assert [path(new, leaf) for leaf in range(7) if leaf != 2] == kept[:2] + kept[3:]
    turns = [[0] * 0] if added.size == 1 else [[turn for _, turn in path(huffman(added), leaf)] for leaf in range(3)]
    for leaf, below in enumerate(turns):
        found = path(new, 7 + leaf)
        assert found[: len(kept[2]) + 1] == [*kept[2], (joint, 1)]
        assert [turn for _, turn in found[len(kept[2]) + 1 :]] == below


def test_of_equally_rare_classes_the_one_with_the_shortest_path_shares_it():
    made = growth.grown(balanced(6), np.ones(6), np.ones(1), 9)  # 2 of 6 paths are shorter
    lengths = [len(path(balanced(6), leaf)) for leaf in range(6)]
    assert made.leaf_up[int(np.argmin(lengths))] & 1 == 0 and made.leaf_up[6] == made.leaf_up[np.argmin(lengths)] + 1


def test_classes_that_come_one_by_one_make_no_long_path():
    tree, counts = huffman(COUNTS), COUNTS
    for _ in range(60):
        made = growth.grown(tree, counts, np.array([100.0]), 9)  # the rarest class stays the rarest
        counts = np.append(counts, 100.0)
        tree = of_pointers(made.leaf_up, made.node_up, counts)
    assert tree.depth == 9
    assert growth.grown(tree, counts, np.ones(2000), 9).leaf_up.size == 2067  # none has room: the shortest path has
