"""Sampled readouts: every class has a row of weights; a step moves the rows of the targets and of a few drawn negatives."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import check, sparse
from ..settings import option, positive
from .full import FullReadout
from .full import least as least

LOSSES = ("softmax", "logistic")
DRAWS = ("unigram", "log-uniform")


@dataclass(frozen=True)
class Options:
    """What `--readout sampled` takes."""

    negatives: int | None = option(
        None, "sampled readout: classes drawn, once a batch (of words: for each example)", type=positive
    )


class SampledReadout(FullReadout):
    """A table of weights that learns from negatives, and answers as a full softmax over the table. Weights start at 0.

    counts     how often each class is met, or how many classes there are
    width      numbers of a hidden vector
    loss       "softmax": sampled softmax with the logQ correction (Jean et al. 2015); it learns the weights of a full
               softmax. "logistic": negative sampling (Mikolov et al. 2013): fast and good for vectors, but its dot products
               are not trained to be normalised, which log_prob, best and scores do all the same
    negatives  softmax: how many are drawn for a batch, default 1024; logistic: how many are drawn for a row, default 5
    draws      "unigram": in proportion to counts^0.75, the default with counts; "log-uniform": about Zipf's law, for
               classes in falling order of frequency, the default without
    batch, rate, seed  most rows a step, step of SGD (softmax: on the sum over a batch; logistic: row by row), seed of
               the draws

    optimiser, decay, clip, biases  as of a FullReadout; rows move that are drawn, or the target of a row

    Raises ValueError for fewer than two classes, and for unigram draws without counts.
    """

    kind = "sampled"
    places: tuple[str, ...] = ("cpu",)  # sparse rows that are drawn: the CPU does them

    def __init__(
        self,
        counts: Any,
        width: int,
        *,
        loss: str = "softmax",
        negatives: int | None = None,
        draws: str | None = None,
        batch: int = 1024,
        rate: float = 0.02,
        seed: int = 0,
        backend: Any = None,
        optimiser: str = "sgd",
        decay: float | None = None,
        clip: float | None = None,
        biases: bool = False,
    ):
        given: dict[str, Any] = {"batch": batch, "rate": rate, "seed": seed, "backend": backend}
        given |= {"optimiser": optimiser, "decay": decay, "clip": clip, "biases": biases}
        super().__init__(counts, width, **given)
        self.loss = check.choice("loss", loss, LOSSES)
        default = min(1024, self.classes) if loss == "softmax" else 5
        self.negatives = check.whole("negatives", default if negatives is None else negatives, 1)
        self.draws = check.choice("draws", draws or DRAWS[self.counts is None], DRAWS)
        if self.draws == "unigram" and self.counts is None:
            raise ValueError("draws: unigram needs how often each class is met; found only how many classes there are")
        self.tick = 0
        self._prepare()

    def _prepare(self) -> None:
        """What follows from counts: made anew when they are filled from a checkpoint."""
        sampled, unigram, shape = self.backend.sampled_softmax, self.draws == "unigram", (self.batch, self.width)
        self._sampler = sampled.unigram(self.counts) if unigram else sampled.log_uniform(self.classes)
        if self.loss == "softmax":
            self._scratch = sampled.workspace(*shape, self.negatives, np.float32)
        else:
            share = np.diff(self._sampler.cumulative, prepend=0)
            self._alias = self.backend.negative.alias(share, power=1)
            self._drawn = np.empty((self.batch, self.negatives), np.int32)
            self._scratch = self.backend.negative.workspace(*shape, self.negatives, np.float32)

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights (V, D), and the counts (V,) where negatives are drawn by them."""
        return super().parameters() | ({"counts": self.counts} if self.draws == "unigram" else {})

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learn from a batch, unchecked; see Readout."""
        learned, rule = self._learns(self._there), self._rule
        if self.loss == "softmax":
            drawn = self.backend.sampled_softmax.step(
                grad, loss, learned, self._scratch, self._sampler, hidden, target, weight, rule, self.seed, self.tick
            )
        else:
            drawn = self._drawn[: len(hidden)]
            self.backend.negative.draw(drawn, self._alias, self.seed, self.tick)
            self.backend.negative.step(
                grad, loss, learned, self._scratch, hidden, target, drawn, weight, rule, "deterministic"
            )
        self.moved = np.concatenate([target, drawn.ravel()])
        self.tick += 1

    def still(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Write the gradient of -log p(target) among all classes and return its mean; nothing moves. It costs as many rows."""
        loss = self._loss[: self._check_step(grad, hidden, target, weight)]
        with self.held_still():
            super().learn(grad, loss, hidden, target, weight)
        return check.loss(loss)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The loss of each row among the classes that the next step draws; nothing moves."""
        self._check(hidden, target)
        found = np.empty(len(hidden), np.float32)
        grad = np.empty((min(len(hidden), self.batch), self.width), np.float32)
        with self.held_still():
            for part in self._parts(hidden):
                rows = hidden[part]
                self.learn(grad[: len(rows)], found[part], rows, target[part])
        return found

    @contextlib.contextmanager
    def held_still(self) -> Iterator[None]:
        """A context in which steps move nothing and draw what the next step after it draws."""
        with super().held_still():
            tick, moved = self.tick, self.moved
            try:
                yield
            finally:
                self.tick, self.moved = tick, moved

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        return super().describe() | {name: getattr(self, name) for name in ("loss", "negatives", "draws")}

    def state(self) -> dict[str, Any]:
        """The number of the next step, from which its negatives are drawn."""
        return {"tick": self.tick}

    def restore(self, state: dict[str, Any]) -> None:
        """Draw as the readout that wrote the state would have; ValueError for counts or a tick that are none."""
        if self.draws == "unigram":
            check.counts(self.counts)
        self.tick = check.whole("tick", state["tick"], 0, 2**63 - 1)
        super().restore(state)
        self._prepare()


def make(
    counts: Any,
    width: int,
    options: Mapping[str, Any],
    *,
    batch: int,
    trunk: bool = True,
    backend: Any = None,
) -> SampledReadout:
    """From options of the command line, see hybrid/readout/__init__.py; without a trunk word2vec's negative sampling."""
    given = {name: options[name] for name in ("negatives", "rate", "seed")} | sparse.readout_named(options)
    loss = "softmax" if trunk else "logistic"
    return SampledReadout(counts, width, loss=loss, batch=batch, backend=backend, **given)


def rebuild(classes: int, **facts: Any) -> SampledReadout:
    """From describe()."""
    return SampledReadout(np.ones(classes) if facts["draws"] == "unigram" else classes, **facts)
