"""The tree readout: hierarchical softmax, where a class costs as many rows as its path is long."""

import functools
from typing import Any

import numpy as np

from cpu import aligned, scores, tree_search
from cpu import tree as trees

from .. import check, console
from .base import Base
from .split import Split

TREES = ("huffman", "balanced")
MODES = ("deterministic", "grouped", "hogwild")
FORMER = {"runs": "grouped"}  # former names of modes, accepted for one more release
MOST = 2**30  # classes: 2 * parent + turn is an int32


class TreeReadout(Base):
    """One logistic regression at each inner node of a binary tree; a class is the leaf at the end of a path of turns.

    counts  how often each class is met; a balanced tree is content with how many classes there are
    width   numbers of a hidden vector
    tree    "huffman": short paths for frequent classes, the fastest; "balanced": all paths about log2 V
    mode    "deterministic": the serial loop over rows, bit for bit, at any number of threads; "grouped": deterministic
            too, but neighbouring rows of one target learn together, faster where batches have such groups (skip-gram);
            "hogwild": threads race
    batch   most rows a step
    rate    step of SGD; nodes move row after row, so row b sees what the rows before it changed
    seed    not used: nothing is drawn
    backend  where the nodes are and move, from hybrid.backend.choose: a GPU has its own, and `nodes` is the host's copy,
            which `best`, `beam` and `scores` fetch first: search branches, so it is the CPU's
    split   how many nodes, from the root on in breadth-first order, learn as dense products on the backend's device, 0: none;
            the others then stay on the CPU. The probabilities are those of the whole tree. But the nodes of the top learn
            by the batch, as a full softmax does: each finds all its examples as it was, and moves once by rate times the
            sum, so it needs a smaller rate or batch than the serial loop; `mode` is that of the others

    A step costs O(B D log V), best is exact. Nodes start at 0. Raises ValueError for fewer than two classes or more than
    2^30, and for a Huffman tree without counts.

    Morin and Bengio 2005, "Hierarchical Probabilistic Neural Network Language Model"; Huffman codes as in Mikolov et
    al. 2013, arXiv:1310.4546.
    """

    kind = "tree"
    places: tuple[str, ...] = ("cpu", "cuda")

    def __init__(
        self,
        counts,
        width,
        *,
        tree="huffman",
        mode="deterministic",
        split=0,
        batch=1024,
        rate=0.025,
        seed=0,
        backend=None,
    ):
        super().__init__(counts, width, batch=batch, rate=rate, seed=seed, backend=backend)
        self.shape = check.choice("tree", tree, TREES)
        self.mode = check.choice("mode", _named_now(mode), MODES)
        if self.shape == "huffman" and self.counts is None:
            raise ValueError(
                'counts: found only how many classes there are; pass one count a class, or tree="balanced"'
            )
        if self.classes > MOST:
            raise ValueError(f"classes: found {self.classes}, expected at most {MOST}: a tree names its turns in int32")
        self.nodes = aligned.empty((self.classes - 1, self.width), np.float32)
        self.nodes.fill(0)
        self.split = check.whole("split", split, 0, self.classes - 1)
        self._cut: Any = None
        if self.split:
            self._cut = Split(self.nodes, self.split, self.backend, self._place, self.batch)
        self._nodes = None if self._cut else self.backend.device.from_host(self.nodes)
        self._prepare()

    def _prepare(self):
        """What follows from counts: made anew when they are filled from a checkpoint."""
        self.tree = trees.huffman(self.counts) if self.shape == "huffman" else trees.balanced(self.classes)
        if self._cut:
            self._cut.cut(self.tree)
        else:
            self._place.do(self._make_room)

    def _make_room(self):
        kernels = self.backend.tree_softmax
        self._plan = kernels.plan(self.tree)
        self._work = kernels.workspace(self.batch, self.width, self.tree.depth, np.float32)

    def best(self, hidden, k, exclude=None) -> tuple[np.ndarray, np.ndarray]:
        """The k most likely classes of each row, exactly; see Readout. Fetches the nodes of a GPU, once a call."""
        with self.alone:
            self.fetch()
            return super().best(hidden, k, exclude)

    def beam(self, hidden, k, width) -> tuple[np.ndarray, np.ndarray]:
        """As best, following only the `width` likeliest prefixes of each length: fast, and may miss some.

        Where fewer than k classes are met, ids ends with -1 and log-probabilities with -inf.
        """
        self._check(hidden)
        check.whole("k", k, 1, self.classes)
        check.whole("width", width, 1)

        def find(ids, log_probs, rows):
            tree_search.beam(ids, log_probs, self.nodes, self.tree, rows, width)

        with self.alone:
            self.fetch()
            return self._each(find, hidden, k)

    def parameters(self) -> dict[str, np.ndarray]:
        """The nodes (V - 1, D), and the counts (V,) from which a Huffman tree is built."""
        self.fetch()
        return {"nodes": self.nodes} | ({"counts": self.counts} if self.shape == "huffman" else {})

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        split = {"split": self.split} if self.split else {}
        return super().describe() | {"tree": self.shape, "mode": self.mode} | split

    def restore(self, state: dict[str, Any]) -> None:
        """Build the tree of the counts that were filled in; ValueError for counts that are none."""
        if self.shape == "huffman":
            check.counts(self.counts)
        super().restore(state)
        self._prepare()

    def learn(self, grad, loss, hidden, target) -> None:
        """As in Readout; but a split tree takes NumPy's arrays, and waits, since its tail is on the CPU wherever its top is.

        A schedule puts `step_tail` and then `learn_top` on queues instead.
        """
        if self._cut:
            self._cut.learn(grad, loss, hidden, target, self.rate * self.rate_scale, self.mode)
        else:
            super().learn(grad, loss, hidden, target)

    def step_tail(self, grad, hidden, target) -> float:
        """The first half of a split tree's `step`: write the tail's part of grad, return that of the loss; raises as step."""
        return self._learned(self._take_tail, grad, hidden, target)

    def learn_top(self, grad, loss, hidden, target) -> None:
        """The second half: add the top's part to grad and write that of loss; arrays of the device, in the work of a queue."""
        self._cut.learn_top(grad, loss, hidden, target, self.rate * self.rate_scale)

    def _take_tail(self, grad, loss, hidden, target):
        self._cut.learn_tail(grad, loss, hidden, target, self.rate * self.rate_scale, self.mode)

    def _take(self, grad, loss, hidden, target):
        if self._cut:
            self.learn(grad, loss, hidden, target)
        else:
            super()._take(grad, loss, hidden, target)

    def _score(self, out, hidden, target):
        if self._cut:
            self._cut.log_prob(out, hidden, target)
        else:
            super()._score(out, hidden, target)

    def _step(self, grad, loss, hidden, target, rate):
        arguments = (self._nodes, self._work, self._plan, hidden, target, rate, self.mode)
        self.backend.tree_softmax.step(grad, loss, *arguments)

    def _log_prob(self, out, hidden, target):
        self.backend.tree_softmax.log_prob(out, self._nodes, self._plan, hidden, target)

    def _pairs(self):
        return self._cut.pairs() if self._cut else [(self.nodes, self._nodes)]

    def _find(self, ids, log_probs, hidden):
        tree_search.best(ids, log_probs, self.nodes, self.tree, hidden)

    def _best_without(self, ids, log_probs, hidden, left_out):
        tree_search.best(ids, log_probs, self.nodes, self.tree, hidden, left_out)

    def _scores(self, out, hidden):
        scores.tree(out, self.nodes, self.tree, hidden)


def rebuild(classes, mode="deterministic", **facts) -> TreeReadout:
    """From describe(), of an earlier release too."""
    return TreeReadout(np.ones(classes), mode=FORMER.get(mode, mode), **facts)


def _named_now(mode):
    if isinstance(mode, str) and mode in FORMER:
        _note_former(mode)
        return FORMER[mode]
    return mode


@functools.cache  # once
def _note_former(mode: str) -> None:
    console.note(f'mode "{mode}" is now called "{FORMER[mode]}"; the former name will be refused by the next release')
