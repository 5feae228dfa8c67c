"""Sampled readouts: every class has a row of weights; a step updates the rows of the targets and of a few drawn negatives."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .. import check
from ..settings import option, positive
from .base import Common, arguments, described
from .full import FullReadout
from .full import least as least

DRAWS = ("unigram", "log-uniform", "uniform")
NEGATIVES = {"softmax": 1024, "logistic": 5, "gbce": 256}
CALIBRATION = 0.75


@dataclass(frozen=True)
class Options:
    """The options of `--readout sampled`."""

    negatives: int | None = option(
        None,
        "sampled readout: negatives per batch; of words per example (default: 1024; gbce: 256; words: 5)",
        type=positive,
    )
    loss: str | None = option(
        None, "sampled readout: loss over the negatives (default: softmax; words: logistic)", choices=tuple(NEGATIVES)
    )
    draws: str | None = option(
        None, "sampled readout: distribution of negatives (default: unigram; gbce: uniform)", choices=DRAWS
    )


@dataclass(frozen=True)
class SampledSoftmax:
    """Sampled softmax with the logQ correction (Jean et al. 2015); it learns the weights of a full softmax.

    negatives  classes drawn per batch; None: 1024, or all if there are fewer
    draws      "unigram": in proportion to counts^0.75; "log-uniform": about Zipf's law, for classes in descending order of
               frequency; "uniform": all classes alike; None: unigram if there are counts, else log-uniform
    """

    negatives: int | None = None
    draws: str | None = None

    def __post_init__(self) -> None:
        _check_negatives(self.negatives)
        if self.draws is not None:
            check.choice("draws", self.draws, DRAWS)


@dataclass(frozen=True)
class NegativeSampling(SampledSoftmax):
    """Negative sampling (Mikolov et al. 2013): fast and good for vectors; queries normalise the logits, training does not.

    negatives  classes drawn per row; None: 5
    draws      as in SampledSoftmax
    """


@dataclass(frozen=True)
class GBCE:
    """The calibrated binary cross-entropy of gSASRec (Petrov and Macdonald 2023, arXiv:2308.07192).

    It is a logistic regression per class as in NegativeSampling, and suits rankings as well, but a batch shares many negatives,
    drawn uniformly from all classes.

    negatives    classes drawn per batch; None: 256, or all if there are fewer
    calibration  t from 0 to 1: at 0 few negatives make it overconfident, at 1 its probabilities are those of all as negatives
    """

    negatives: int | None = None
    calibration: float = CALIBRATION

    def __post_init__(self) -> None:
        _check_negatives(self.negatives)
        if check.number("calibration", self.calibration, 0) > 1:
            raise ValueError(f"calibration: found {self.calibration}, expected a number from 0 to 1")


Loss = SampledSoftmax | NegativeSampling | GBCE
LOSSES: dict[str, type[Loss]] = {"softmax": SampledSoftmax, "logistic": NegativeSampling, "gbce": GBCE}


def _check_negatives(negatives: int | None) -> None:
    if negatives is not None:
        check.whole("negatives", negatives, 1)


def loss_named(name: str, draws: str | None = None, **settings: Any) -> Loss:
    """Returns the loss of a name, as in command line and checkpoints; ValueError for a setting of another loss."""
    kind: Any = LOSSES[check.choice("loss", name, tuple(LOSSES))]
    if kind is not GBCE:
        settings["draws"] = draws
    elif draws not in (None, "uniform"):
        raise ValueError(f"draws: found {draws!r}, expected 'uniform', which gbce is calibrated for; leave it out")
    return kind(**settings)


class SampledReadout(FullReadout):
    """A table of weights that learns from negatives, and answers as a full softmax over the table. Weights start at 0.

    counts     class counts, or the number of classes
    width      numbers of a hidden vector
    loss       SampledSoftmax(1024), NegativeSampling(5) or GBCE(256), or by name: "softmax", "logistic", "gbce"
    batch      maximum rows per step
    seed       of the draws
    optimiser, biases  as in a FullReadout, for the rows of targets and drawn negatives. A step is on the sum over a batch,
               under NegativeSampling row by row

    Raises ValueError for fewer than two classes, and for unigram draws without counts.
    """

    kind = "sampled"
    places: tuple[str, ...] = ("cpu",)  # drawn sparse rows: only on the CPU

    def __init__(
        self, counts: Any, width: int, *, loss: str | Loss = "softmax", seed: int = 0, **common: Unpack[Common]
    ):
        super().__init__(counts, width, seed=seed, **common)
        own = loss if isinstance(loss, Loss) else loss_named(loss)
        self.loss = next(name for name, kind in LOSSES.items() if type(own) is kind)
        usual = NEGATIVES[self.loss] if self.loss == "logistic" else min(NEGATIVES[self.loss], self.classes)
        self.negatives = usual if own.negatives is None else own.negatives
        if isinstance(own, GBCE):
            self.draws, self.calibration = "uniform", own.calibration
        else:
            self.draws = own.draws or DRAWS[self.counts is None]
        if self.draws == "unigram" and self.counts is None:
            raise ValueError("draws: unigram needs class counts; found only the number of classes")
        self.tick = 0
        self._prepare()

    def _prepare(self) -> None:
        """Sets the attributes derived from counts, again after a checkpoint has filled them."""
        sampled = self.backend.sampled_softmax
        if self.draws == "unigram":
            self._sampler = sampled.unigram(self.counts)
        else:
            self._sampler = (sampled.uniform if self.draws == "uniform" else sampled.log_uniform)(self.classes)
        shape = self.batch, self.width, self.negatives, np.float32
        if self.loss == "logistic":
            share = np.diff(self._sampler.cumulative, prepend=0)
            self._alias = self.backend.negative.alias(share)
            self._drawn = np.empty((self.batch, self.negatives), np.int32)
            self._scratch = self.backend.negative.workspace(*shape)
        else:
            self._scratch = sampled.workspace(*shape)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the weights (V, D), and the counts (V,) if negatives are drawn by them."""
        return super().parameters() | ({"counts": self.counts} if self.draws == "unigram" else {})

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        learn = self._learn_alone if self.loss == "logistic" else self._learn_shared
        drawn = learn(grad, loss, hidden, target, weight, self._step_rate)
        self.moved = np.concatenate([target, drawn.ravel()])
        self.tick += 1

    @property
    def online(self) -> bool:
        """True if it can learn online: rows do not share their negatives, and use plain SGD."""
        return self.loss == "logistic" and self.optimiser == "sgd" and not self.biased

    def learn_online(self, grad: Any, loss: Any, hidden: Any, inputs: Any, target: Any, weight: Any) -> None:
        from cpu import words

        drawn = self._alias, self.negatives, (self.seed, self.tick)
        given = self._learns(self._there), self._scratch, *drawn, target, weight, self._step_rate
        words.negative_step(grad, loss, hidden, inputs, *given)
        self.tick += 1

    def _learn_alone(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any, rate: float) -> Any:
        """Learns with separate negatives for every row, and returns them."""
        drawn, learned = self._drawn[: len(hidden)], self._learns(self._there)
        self.backend.negative.draw(drawn, self._alias, self.seed, self.tick)
        self.backend.negative.step(grad, loss, learned, self._scratch, hidden, target, drawn, weight, rate)
        return drawn

    def _learn_shared(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any, rate: float) -> Any:
        """Learns with negatives shared by the batch, and returns them."""
        kernels, learned = self.backend.sampled_softmax, self._learns(self._there)
        count = kernels.draw(self._scratch, self._sampler, self.negatives, target, self.seed, self.tick)
        given = grad, loss, learned, self._scratch, count, hidden, target, weight, rate
        if self.loss == "softmax":
            return kernels.learn(*given)
        kernels = self.backend.sampled_logistic
        return kernels.learn(*given, kernels.calibrated(self.negatives, self.classes, self.calibration))

    def dry_run(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None) -> float:
        """Writes the gradient of -log p(target) over all classes and returns its mean; nothing is updated. It costs V rows."""
        loss = self._loss[: self._check_step(grad, hidden, target, weight)]
        with self.dry_runs():
            super().learn(grad, loss, hidden, target, weight)
        return check.loss(loss)

    def losses(self, hidden: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the loss of each row among the classes that the next step draws; nothing is updated."""
        self._check(hidden, target)
        losses, graded = np.empty(len(hidden), np.float32), self.batch if self.loss == "logistic" else 0
        grad = np.empty((graded, self.width), np.float32)
        with self.dry_runs():
            for part in self._parts(hidden):
                rows = hidden[part]
                self.learn(grad[: len(rows)], losses[part], rows, target[part])
        return losses

    @contextlib.contextmanager
    def dry_runs(self) -> Iterator[None]:
        """Provides a context in which steps update nothing and draw the negatives of the next step after it."""
        with super().dry_runs():
            tick, moved = self.tick, self.moved
            try:
                yield
            finally:
                self.tick, self.moved = tick, moved

    def describe(self) -> dict[str, Any]:
        more = {"calibration": self.calibration} if self.loss == "gbce" else {}
        return super().describe() | {name: getattr(self, name) for name in ("loss", "negatives", "draws")} | more

    def state(self) -> dict[str, Any]:
        """Returns the number of the next step, from which its negatives are drawn."""
        return {"tick": self.tick}

    def restore(self, state: dict[str, Any]) -> None:
        if self.draws == "unigram":
            check.counts(self.counts)
        self.tick = check.whole("tick", state["tick"], 0, 2**63 - 1)
        super().restore(state)
        self._prepare()


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> SampledReadout:
    """Returns the readout from options of the command line, see hybrid/readout/__init__.py; without a trunk word2vec's loss."""
    own = arguments(options, Options)
    size = counts if isinstance(counts, int) else len(counts)
    if (own["negatives"] or 0) > size:
        raise ValueError(f"--negatives: found {own['negatives']}, expected at most {size:,}, the classes; lower it")
    name, negatives, draws = own.pop("loss"), own.pop("negatives"), own.pop("draws")
    loss = loss_named(name or ("softmax" if trunk else "logistic"), draws, negatives=negatives)
    return SampledReadout(counts, width, loss=loss, seed=options["seed"], **sizes, **own)


def rebuild(classes: int, loss: str, negatives: int, draws: str, seed: int, **facts: Any) -> SampledReadout:
    """Returns the readout from describe()."""
    more = {"calibration": facts.pop("calibration")} if "calibration" in facts else {}
    own = loss_named(loss, draws, negatives=negatives, **more)
    counts = np.ones(classes) if draws == "unigram" else classes
    return SampledReadout(counts, width=facts.pop("width"), loss=own, seed=seed, **described(facts))
