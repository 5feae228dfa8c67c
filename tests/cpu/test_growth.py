"""What nodes know of classes, which nodes another tree keeps to the bit, and where classes that are added stand."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu.tree import growth
from cpu.tree.tree import balanced, huffman, of_pointers


class Learned(NamedTuple):
    rows: Any
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


def learned(classes, width=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (classes - 1, width)
    return Learned(*(rng.random(size).astype(np.float32) for size in (shape, shape[0], shape, shape[0])))


def below(tree, masses):
    """Left and right classes of each node."""
    sides = [([], []) for _ in tree.node_up]
    for leaf in range(masses.size):
        for node, turn in path(tree, leaf):
            sides[node][turn].append(leaf)
    return sides


MASSES = np.array([8.0, 1, 2, 5, 1, 3, 1])


def test_vectors_follow_the_definition():
    old, had = huffman(MASSES), learned(7)
    vectors = np.zeros((7, 3))
    for node, (left, right) in enumerate(below(old, MASSES)):
        p = MASSES[right].sum() / MASSES[left + right].sum()
        vectors[left] -= p * had.rows[node]
        vectors[right] += (1 - p) * had.rows[node]
    np.testing.assert_allclose(growth.vectors(had, old, MASSES), vectors, rtol=1e-5, atol=1e-6)


def test_nodes_that_part_the_same_sets_are_kept_and_others_are_0():
    masses = np.array([1.0, 1, 2, 5, 9, 3, 8])  # both trees have a node that parts the first two
    old, new, had = huffman(masses), balanced(7), learned(7)
    (made, count), before = growth.kept(had, old, new), below(old, masses)
    for node, (left, right) in enumerate(below(new, masses)):
        same = before.index((left, right)) if (left, right) in before else None
        turned = before.index((right, left)) if (right, left) in before else None
        expected = 0 if same is turned is None else had.rows[same] if same is not None else -had.rows[turned]
        np.testing.assert_array_equal(made.rows[node], expected)
    assert had.rows.any(axis=1).all() and count == made.rows.any(axis=1).sum() > 0


def test_a_node_whose_sides_change_places_turns_its_sign():
    had, tree = learned(3), balanced(3)  # the root parts {0, 1} and {2}, or {0} and the others
    turned = tree._replace(
        leaf_up=tree.leaf_up ^ 1, node_up=np.where(tree.node_up > 0, tree.node_up ^ 1, tree.node_up ^ (tree.node_up >= 0)),
        children=tree.children[:, ::-1].copy(),
    )  # fmt: skip
    made, _ = growth.kept(had, tree, turned)
    np.testing.assert_array_equal(made.rows, -had.rows)
    np.testing.assert_array_equal(made.biases, -had.biases)
    np.testing.assert_array_equal(made.squares, had.squares)


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
