"""The mixture readout: the probabilities of several readouts over the same classes, averaged with learned weights."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import check
from ..optimisers import SGD
from ..settings import names, option
from . import least as least_of
from . import rebuild as rebuild_readout
from .base import Base, Pairs, arguments

SHAPES = ("huffman", "balanced")
INEXACT = ("sampled", "neighbours")  # kinds without a cheap and exact probability of one class
MOST = 1000  # trees, which are built before training
FIRST = 16  # minimum classes of a list
AHEAD = 2  # times k: depth of the first lists
NUMBERS = 2**22  # of a chunk of scores
DEEP = 8  # lists with more than 1 / DEEP of the classes cost more than all scores


@dataclass(frozen=True)
class Options:
    """The options of `--readout mixture`."""

    trees: list[str] | None = option(
        None, f"mixture readout: shapes of its trees (default: {','.join(SHAPES)})", type=names, metavar="SHAPES"
    )


class MixtureReadout(Base):
    """A mixture p(v | h) = sum_k a_k p_k(v | h) over readouts k, with learned mixture weights a (`shares`).

    readouts  two or more TreeReadouts, FullReadouts or others with exact probabilities, over the same classes, for hidden
              vectors of the same width, on the CPU; the mixture takes ownership. Trees should differ in what is close
    pace      fraction by which the mixture weights move towards the mean responsibilities per step; 0: they stay equal

    Every readout makes its own step on every example, as it would alone. The gradient of the hidden vectors in a step is that
    of sum_k a_k (-log p_k), an upper bound of the loss -log p; `dry_run` writes that of the loss itself. The mixture weights
    then move towards the mean of the responsibilities a_k p_k(target) / p(target), a step of EM. The cost of a step, of
    `log_prob` and of `scores` is the sum over readouts. Two theoretical alternatives learned less (docs/trees.md): steps
    weighted by responsibilities, in which each readout learns from part of the examples, and the loss's own gradient.

    `best` is exact. For trees it merges the best classes of each (Fagin's threshold algorithm). For other readouts, or if that
    needs long lists, it computes all scores, in chunks.

    rate      the largest rate of the readouts; setting it scales the others in proportion
    batch     the smallest of theirs

    Raises ValueError for fewer than two readouts, for inconsistent ones, and for those without cheap or exact probabilities:
    sampled ones, whose step lacks the sum over all classes; a forest of neighbours.

    Mixture weights: Cappé and Moulines 2009, "On-line expectation-maximization algorithm for latent data models".
    """

    kind = "mixture"
    searches_on_host = True

    def __init__(self, readouts: Sequence[Base], *, pace: float = 0.01):
        self.readouts = _checked(readouts)
        first = self.readouts[0]
        rate = max(readout.rate for readout in self.readouts)
        self._ratios = [readout.rate / rate if rate else 1.0 for readout in self.readouts]
        batch = min(readout.batch for readout in self.readouts)
        super().__init__(first.classes, first.width, batch=batch, optimiser=SGD(rate), backend=first.backend)
        self.pace = check.number("pace", pace, 0)
        if self.pace > 1:
            raise ValueError(f"pace: found {pace}, expected a number from 0 to 1")
        self.shares = np.full(len(self.readouts), 1 / len(self.readouts))
        for readout in self.readouts:
            readout.alone = self.alone  # a call of a part is a call of the whole
            readout.mixed = True
        self._losses = np.empty((len(self.readouts), self.batch), np.float32)
        self._grads = np.empty((len(self.readouts), self.batch, self.width), np.float32)

    def _set_rate(self, rate: float) -> None:
        super()._set_rate(rate)
        for readout, ratio in zip(self.readouts, self._ratios, strict=True):
            if readout.rate != rate:
                readout.rate = rate * ratio

    def begin_with(self, vectors: np.ndarray) -> None:
        """Initialises every readout from vectors (V, D) float32; see Readout."""
        self._check_vectors(vectors)
        for readout in self.readouts:
            readout.begin_with(vectors)

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        duty = self._step_each(loss, hidden, target, weight)
        self._add(grad, np.broadcast_to(self.shares.astype(np.float32)[:, None], duty.shape))
        if weight is not None:
            duty *= weight
        self._share(duty, len(hidden))

    def dry_run(self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any = None) -> float:
        """Writes the gradient of -log p(target) of the mixture and returns its mean; nothing is updated."""
        loss = self._loss[: self._check_step(grad, hidden, target, weight)]
        with self.dry_runs():
            self._add(grad, self._step_each(loss, hidden, target, weight))
        return check.loss(loss)

    def _step_each(self, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any) -> np.ndarray:
        """Runs a step of every readout, its gradient into _grads; writes the mixture's loss, returns responsibilities."""
        losses = self._losses[:, : len(hidden)]
        for readout, grads, own in zip(self.readouts, self._grads, losses, strict=True):
            readout.rate_scale = self.rate_scale
            readout.learn(grads[: len(hidden)], own, hidden, target, weight)
        np.negative(losses, out=losses)
        if weight is not None:
            np.divide(losses, weight, out=losses, where=weight > 0)
        duty = self._duty(loss, losses)
        if weight is not None:
            loss *= weight
        return duty

    def _add(self, grad: np.ndarray, parts: np.ndarray) -> None:
        """Writes grad (B, D) = the sum of the readouts' gradients, each row weighted by parts (K, B)."""
        grad.fill(0)
        for grads, own in zip(self._grads, parts, strict=True):
            grads[: len(grad)] *= own[:, None]
            grad += grads[: len(grad)]

    def _duty(self, loss: np.ndarray, log_probs: np.ndarray) -> np.ndarray:
        """Returns responsibilities (K, B) float32 from the readouts' log-probabilities (K, B); writes the mixture's loss."""
        mean = self._mixed(log_probs)
        np.negative(mean, out=loss, casting="same_kind")
        return (self.shares[:, None] * np.exp(log_probs - mean)).astype(np.float32)

    def _share(self, duty: np.ndarray, rows: int) -> None:
        """Moves the mixture weights by `pace` towards the responsibilities, which are averaged with the example weights."""
        earned = duty.sum(axis=1, dtype=np.float64)
        total = earned.sum()
        if self.rate_scale and total > 0:
            self.shares += min(self.pace * total / rows, 1.0) * (earned / total - self.shares)

    @contextlib.contextmanager
    def dry_runs(self) -> Iterator[None]:
        with contextlib.ExitStack() as open_contexts:
            open_contexts.enter_context(super().dry_runs())
            for readout in self.readouts:
                open_contexts.enter_context(readout.dry_runs())
            yield

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the parameters of the readouts, by number and name ("0.nodes"), and the `shares` (K,) float64."""
        own = [readout.parameters() for readout in self.readouts]
        return _numbered(own) | {"shares": self.shares}

    def _pairs(self) -> Pairs:
        return [pair for readout in self.readouts for pair in readout._pairs()]

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "readouts": [readout.describe() for readout in self.readouts], "pace": self.pace}

    def state(self) -> dict[str, Any]:
        return _numbered([readout.state() for readout in self.readouts])

    def restore(self, state: dict[str, Any]) -> None:
        """Restores a state; ValueError for invalid mixture weights."""
        if not (self.shares >= 0).all() or not abs(self.shares.sum() - 1) < 1e-6:
            raise ValueError(f"shares: found {self.shares}, expected numbers of at least 0 that sum to 1")
        for k, readout in enumerate(self.readouts):
            own = f"{k}."
            readout.restore({name.removeprefix(own): value for name, value in state.items() if name.startswith(own)})

    def _mixed(self, log_probs: np.ndarray) -> np.ndarray:
        """Returns log sum_k shares[k] exp(log_probs[k]): (K, ...) -> (...), float64."""
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight of 0; NaN propagates
            shares = np.log(self.shares).reshape(-1, *[1] * (log_probs.ndim - 1))
            mean: np.ndarray = np.logaddexp.reduce(log_probs + shares, axis=0)
        return mean

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:
        log_probs = np.empty((len(self.readouts), len(hidden)), np.float32)
        for readout, own in zip(self.readouts, log_probs, strict=True):
            readout._score(own, hidden, target)
        out[:] = self._mixed(log_probs)

    def _best_without(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> None:
        from .tree import TreeReadout

        rows = np.arange(len(hidden))
        if all(isinstance(readout, TreeReadout) for readout in self.readouts):
            rows = self._by_lists(ids, log_probs, hidden, left_out)
        size = max(NUMBERS // self.classes, 1)
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            ids[part], log_probs[part] = self._among_all(hidden[part], ids.shape[1], left_out and left_out.of(part))

    def _by_lists(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: Any) -> np.ndarray:
        """Writes the k best classes of each row, ties by ascending class. Returns the unfinished rows, which need longer lists.

        Fagin's threshold algorithm, on lists of each tree's own best. A class that is in no list of depth d is, under every
        tree, at most as likely as the last of that tree's list; the mixture of these last probabilities therefore bounds it.
        The depth doubles until the k-th best of the listed classes is above the bound.

        Fagin, Lotem and Naor 2001, "Optimal Aggregation Algorithms for Middleware".
        """
        k, rows = ids.shape[1], np.arange(len(hidden))
        depth, most = max(AHEAD * k, FIRST), self.classes // (DEEP * len(self.readouts))
        while len(rows) and depth <= most:
            lists, last = self._lists(hidden[rows], depth, left_out and left_out.of(rows))
            values = self._values(hidden, rows, lists)
            order = np.lexsort((lists, -values))[:, :k]
            ids[rows], log_probs[rows] = (np.take_along_axis(array, order, axis=1) for array in (lists, values))
            short = np.isneginf(last).any(axis=0)  # a list that ends contains every class
            rows = rows[~(short | (log_probs[rows, -1] >= self._mixed(last)))]
            depth *= 2
        return rows

    def _lists(self, hidden: np.ndarray, depth: int, left_out: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the classes of all lists (B, C), each once, otherwise -1; the last log-probability of each list (K, B)."""
        ids = np.empty((len(self.readouts), len(hidden), depth), np.int32)
        log_probs = np.empty(ids.shape, np.float32)
        for tree, own, values in zip(self.readouts, ids, log_probs, strict=True):
            tree._best_without(own, values, hidden, left_out)
        classes = np.sort(np.concatenate(ids, axis=1), axis=1)
        classes[:, 1:][classes[:, 1:] == classes[:, :-1]] = -1
        return classes, log_probs[:, :, -1]

    def _values(self, hidden: np.ndarray, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Returns the log-probability of each of the classes (B, C) of these rows, float32; -inf for none."""
        values = np.full(classes.shape, -np.inf, np.float32)
        place = np.nonzero(classes >= 0)
        for first in range(0, len(place[0]), self.batch):  # bounds the copies of hidden vectors
            row, column = (at[first : first + self.batch] for at in place)
            log_probs = np.empty(len(row), np.float32)
            self._log_prob(log_probs, hidden[rows[row]], classes[row, column])
            values[row, column] = log_probs
        return values

    def _among_all(self, hidden: np.ndarray, k: int, left_out: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns the k best by all scores, ties by ascending class."""
        scores = np.empty((len(hidden), self.classes), np.float32)
        self._scores(scores, hidden)
        if left_out is not None:
            for b, (first, last) in enumerate(zip(left_out.first, left_out.last, strict=True)):
                scores[b, left_out.ids[first:last]] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        log_probs = np.take_along_axis(scores, order, axis=1)
        return np.where(np.isneginf(log_probs), -1, order).astype(np.int32), log_probs

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        more = np.empty_like(out)
        out.fill(-np.inf)
        for readout, share in zip(self.readouts, self.shares, strict=True):
            readout._scores(more, hidden)
            if share > 0:
                np.logaddexp(out, more + np.float32(np.log(share)), out=out)


def _numbered(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns all entries, with the number of the part as a prefix of the name."""
    return {f"{k}.{name}": value for k, part in enumerate(parts) for name, value in part.items()}


def _checked(readouts: Sequence[Base]) -> list[Base]:
    """Returns the readouts; ValueError unless they are consistent."""
    parts = list(readouts)
    if len(parts) < 2:
        raise ValueError(f"readouts: found {len(parts)}, expected two or more to mix")
    for k, readout in enumerate(parts):
        _check_one(f"readouts[{k}]", readout)
        if any(readout is other for other in parts[:k]):
            raise ValueError(f"readouts[{k}]: found the same readout twice, expected a copy; see copy.deepcopy")
        for name in ("classes", "width"):
            one, other = getattr(readout, name), getattr(parts[0], name)
            if one != other:
                raise ValueError(f"readouts[{k}]: found {one} as {name}, expected {other}, as of the first")
    return parts


def _check_one(name: str, readout: Any) -> None:
    if not isinstance(readout, Base) or readout.kind in INEXACT:
        raise ValueError(
            f"{name}: found {type(readout).__name__}, expected a readout that knows the probability of one class exactly and "
            "cheaply, such as TreeReadout: what each answers for is a share of it"
        )
    if not readout.backend.device.host_memory:
        raise ValueError(f'{name}: found one on "{readout.backend.name}", expected the CPU; make it without backend')


def make(counts: Any, width: int, options: Mapping[str, Any], *, trunk: bool, **sizes: Any) -> MixtureReadout:
    """Returns the readout from options of the command line; see hybrid/readout/__init__.py."""
    from .tree import TreeReadout

    own = arguments(options, Options)
    shapes = own.pop("trees") or SHAPES
    check.whole("trees", len(shapes), 2, MOST)
    return MixtureReadout([TreeReadout(counts, width, tree=shape, **sizes, **own) for shape in shapes])


def rebuild(readouts: Sequence[dict[str, Any]], backend: Any = None, **facts: Any) -> MixtureReadout:
    """Returns the readout from describe()."""
    made: list[Any] = [rebuild_readout(one, backend) for one in readouts]
    return MixtureReadout(made, **facts)


def least(readouts: Sequence[dict[str, Any]], **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sum(map(least_of, readouts))
