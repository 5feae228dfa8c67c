"""The mixture readout: the probabilities of several readouts over the same classes, averaged with learned weights."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, sparse
from ..settings import names, option
from . import least as least_of
from . import rebuild as rebuild_readout
from .base import Base

if TYPE_CHECKING:
    from cpu.output.topk import Excluded


# The best classes of a mixture of trees, exactly, from lists of each tree's own best: Fagin's threshold algorithm.
#
# A class that is in no list of depth d is, under every tree, at most as likely as the last of that tree's list; so the
# mixture of these last probabilities bounds it. Lists are made twice as deep until the k-th best of the classes met is above
# the bound.
#
# Fagin, Lotem and Naor 2001, "Optimal Aggregation Algorithms for Middleware".

FIRST = 16  # classes of a list at least
AHEAD = 2  # times k: so deep are the first lists


def mixed(log_probs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """log sum_k shares[k] exp(log_probs[k]): (K, ...) -> (...), float64."""
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0; NaN goes through
        found: np.ndarray = np.logaddexp.reduce(
            log_probs + np.log(shares).reshape(-1, *[1] * (log_probs.ndim - 1)), axis=0
        )
    return found


def best(
    ids: np.ndarray,
    log_probs: np.ndarray,
    trees: Sequence[Any],
    shares: np.ndarray,
    hidden: np.ndarray,
    left_out: "Excluded | None",
    most: int,
) -> np.ndarray:
    """Write the k best classes of each row, equals by rising class; ids, log_probs (B, k). Returns the rows not done.

    trees   readouts with _find, _best_without and _score
    most    the depth at which lists are given up: a row that needs deeper ones is not done
    """
    k, rows = ids.shape[1], np.arange(len(hidden))
    depth = max(AHEAD * k, FIRST)
    while len(rows) and depth <= most:
        out = None if left_out is None else left_out.of(rows)
        lists, last = _lists(trees, np.ascontiguousarray(hidden[rows]), depth, out)
        values = _values(trees, shares, hidden, rows, lists)
        order = np.lexsort((lists, -values))[:, :k]
        ids[rows], log_probs[rows] = (np.take_along_axis(array, order, axis=1) for array in (lists, values))
        short = np.isneginf(last).any(axis=0)  # a list that ends has met every class
        rows = rows[~(short | (log_probs[rows, -1] >= mixed(last, shares)))]
        depth *= 2
    return rows


def _lists(
    trees: Sequence[Any], hidden: np.ndarray, depth: int, left_out: "Excluded | None"
) -> tuple[np.ndarray, np.ndarray]:
    """The classes of all lists (B, C), each once and otherwise -1; and the last log-probability of each list (K, B)."""
    ids = np.empty((len(trees), len(hidden), depth), np.int32)
    log_probs = np.empty(ids.shape, np.float32)
    for tree, own, values in zip(trees, ids, log_probs, strict=True):
        if left_out is None:
            tree._find(own, values, hidden)
        else:
            tree._best_without(own, values, hidden, left_out)
    classes = np.sort(np.concatenate(ids, axis=1), axis=1)
    classes[:, 1:][classes[:, 1:] == classes[:, :-1]] = -1
    return classes, log_probs[:, :, -1]


def _values(
    trees: Sequence[Any], shares: np.ndarray, hidden: np.ndarray, rows: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """The mixture's log-probability of each of the classes (B, C) of these rows, float32; -inf for none."""
    values = np.full(classes.shape, -np.inf, np.float32)
    place = np.nonzero(classes >= 0)
    size = min(tree.batch for tree in trees)  # each has scratch for as many rows as it was made for
    for first in range(0, len(place[0]), size):
        row, column = (at[first : first + size] for at in place)
        asked, target = hidden[rows[row]], classes[row, column]
        found = np.empty((len(trees), len(row)), np.float32)
        for tree, own in zip(trees, found, strict=True):
            tree._score(own, asked, target)
        values[row, column] = mixed(found, shares)
    return values


SHAPES = ("huffman", "balanced")
MOST = 1000  # trees, which are built before anything is learned
NUMBERS = 2**22  # of a chunk of scores
DEEP = 8  # lists that name more than one in so many classes cost more than all scores do


@dataclass(frozen=True)
class Options:
    """What `--readout mixture` takes."""

    trees: list[str] | None = option(
        None,
        f"mixture readout: the shapes of its trees, with commas between them (default: {','.join(SHAPES)})",
        type=names,
        metavar="SHAPES",
    )


class MixtureReadout(Base):
    """p(v | h) = sum_k a_k p_k(v | h) over readouts k, whose shares a learn too.

    readouts  two or more TreeReadouts, FullReadouts or others with exact probabilities, over the same classes, for hidden
              vectors of the same width, on the CPU; from then on they belong to the mixture. Trees should differ: where one
              has put two classes far apart, another may have them together
    pace      how far the shares go in a step towards what the readouts earned in it; 0: they stay equal

    Every readout makes its own step on every example, as it would alone. A step's gradient of the hidden vectors is that of
    sum_k a_k (-log p_k), which is an upper bound of the loss -log p; `still` writes that of the loss itself. Then shares move
    towards the mean of the responsibilities a_k p_k(target) / p(target), a step of EM. So a step costs what those of all
    readouts cost, and so do `log_prob` and `scores`. What theory asks for instead was tried and learned less: readouts that
    learn by their responsibilities, each then from a part of the examples, and the loss's own gradient (docs/mixtures.md).

    `best` is exact. Of trees it looks at the best classes of each (Fagin's threshold algorithm); of others, and where that
    needs long lists, at all scores, in chunks.

    rate      the greatest of the readouts' rates; where it is set, the others keep their ratio to it
    batch     the smallest of theirs

    Raises ValueError for fewer than two readouts, for readouts that do not suit each other, and for those that have no cheap
    or no exact probabilities: sampled ones, whose step does not know the sum over all classes; a forest of neighbours; label
    trees, whose labels are no rivals.

    Shares: Cappé and Moulines 2009, "On-line expectation-maximization algorithm for latent data models".
    """

    kind = "mixture"

    def __init__(self, readouts: Sequence[Base], *, pace: float = 0.01):
        self.readouts = _checked(readouts)
        first = self.readouts[0]
        rate = max(readout.rate for readout in self.readouts)
        self._ratios = [readout.rate / rate if rate else 1.0 for readout in self.readouts]
        batch = min(readout.batch for readout in self.readouts)
        super().__init__(first.classes, first.width, batch=batch, rate=rate, seed=0, backend=first.backend)
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
        """It is the greatest of the readouts' rates, which keep their ratios."""
        super()._set_rate(rate)
        for readout, ratio in zip(self.readouts, self._ratios, strict=True):
            if readout.rate != rate:
                readout.rate = rate * ratio

    def begin_with(self, vectors: np.ndarray) -> None:
        """Let every readout begin with vectors (V, D) float32; see Readout."""
        self._check_vectors(vectors)
        for readout in self.readouts:
            readout.begin_with(vectors)

    def learn(self, grad: Any, loss: Any, hidden: Any, target: Any, weight: Any = None) -> None:
        """Learn from a batch, unchecked; see Readout."""
        duty = self._step_each(loss, hidden, target, weight)
        self._add(grad, np.broadcast_to(self.shares.astype(np.float32)[:, None], duty.shape))
        if weight is not None:
            duty *= weight
        self._share(duty, len(hidden))

    def still(
        self, grad: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: np.ndarray | None = None
    ) -> float:
        """Write the gradient of -log p(target) of the mixture and return its mean; nothing moves."""
        loss = self._loss[: self._check_step(grad, hidden, target, weight)]
        with self.held_still():
            self._add(grad, self._step_each(loss, hidden, target, weight))
        return check.loss(loss)

    def _step_each(self, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray, weight: Any) -> np.ndarray:
        """Every readout learns, its gradient into _grads; writes the mixture's loss, returns responsibilities (K, B)."""
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
        """grad (B, D) = the sum of the readouts' gradients, each row times a number of parts (K, B)."""
        grad.fill(0)
        for grads, own in zip(self._grads, parts, strict=True):
            grads[: len(grad)] *= own[:, None]
            grad += grads[: len(grad)]

    def _duty(self, loss: np.ndarray, log_probs: np.ndarray) -> np.ndarray:
        """The responsibilities (K, B) float32, by log-probabilities of the readouts (K, B); writes the mixture's loss."""

        whole = mixed(log_probs, self.shares)
        np.negative(whole, out=loss, casting="same_kind")
        duty: np.ndarray = (self.shares[:, None] * np.exp(log_probs - whole)).astype(np.float32)
        return duty

    def _share(self, duty: np.ndarray, rows: int) -> None:
        """Shares go `pace` of the way to what was earned; an example has as much part in it as it has weight."""
        earned = duty.sum(axis=1, dtype=np.float64)
        total = earned.sum()
        if self.rate_scale and total > 0:
            self.shares += min(self.pace * total / rows, 1.0) * (earned / total - self.shares)

    @contextlib.contextmanager
    def held_still(self) -> Iterator[None]:
        """A context in which steps move nothing."""
        with contextlib.ExitStack() as held:
            held.enter_context(super().held_still())
            for readout in self.readouts:
                held.enter_context(readout.held_still())
            yield

    def parameters(self) -> dict[str, np.ndarray]:
        """Those of the readouts, by number and name ("0.nodes"), and the `shares` (K,) float64."""
        own = [readout.parameters() for readout in self.readouts]
        return _numbered(own) | {"shares": self.shares}

    def send(self) -> None:
        """Go on from parameters() as they were filled."""
        for readout in self.readouts:
            readout.send()

    def fetch(self) -> None:
        """Nothing to do: all is on the host."""

    def describe(self) -> dict[str, Any]:
        """What `rebuild` needs."""
        return {"kind": self.kind, "readouts": [readout.describe() for readout in self.readouts], "pace": self.pace}

    def state(self) -> dict[str, Any]:
        """Those of the readouts, by number and name."""
        return _numbered([readout.state() for readout in self.readouts])

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; ValueError for shares that are none."""
        if not (self.shares >= 0).all() or not abs(self.shares.sum() - 1) < 1e-6:
            raise ValueError(f"shares: found {self.shares}, expected numbers of at least 0 that sum to 1")
        for k, readout in enumerate(self.readouts):
            own = f"{k}."
            readout.restore({name.removeprefix(own): value for name, value in state.items() if name.startswith(own)})

    def _log_prob(self, out: Any, hidden: Any, target: Any) -> None:

        found = np.empty((len(self.readouts), len(hidden)), np.float32)
        for readout, own in zip(self.readouts, found, strict=True):
            readout._score(own, hidden, target)
        out[:] = mixed(found, self.shares)

    def _find(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray) -> None:
        self._best_without(ids, log_probs, hidden, None)

    def _best_without(
        self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded | None"
    ) -> None:
        from .tree import TreeReadout

        rows = np.arange(len(hidden))
        if all(isinstance(readout, TreeReadout) for readout in self.readouts):
            most = self.classes // (DEEP * len(self.readouts))
            rows = best(ids, log_probs, self.readouts, self.shares, hidden, left_out, most)
        size = max(NUMBERS // self.classes, 1)
        for first in range(0, len(rows), size):
            part = rows[first : first + size]
            ids[part], log_probs[part] = self._among_all(hidden[part], ids.shape[1], left_out and left_out.of(part))

    def _among_all(self, hidden: np.ndarray, k: int, left_out: "Excluded | None") -> tuple[np.ndarray, np.ndarray]:
        """The k best by all scores, equals by rising class."""
        scores = np.empty((len(hidden), self.classes), np.float32)
        self._scores(scores, hidden)
        if left_out is not None:
            for b, (first, last) in enumerate(zip(left_out.first, left_out.last, strict=True)):
                scores[b, left_out.ids[first:last]] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        found = np.take_along_axis(scores, order, axis=1)
        return np.where(np.isneginf(found), -1, order).astype(np.int32), found

    def _scores(self, out: np.ndarray, hidden: np.ndarray) -> None:
        more = np.empty_like(out)
        out.fill(-np.inf)
        for readout, share in zip(self.readouts, self.shares, strict=True):
            readout._scores(more, hidden)
            if share > 0:
                np.logaddexp(out, more + np.float32(np.log(share)), out=out)


def _numbered(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All entries, each with the number of its part before its name."""
    return {f"{k}.{name}": value for k, part in enumerate(parts) for name, value in part.items()}


def _checked(readouts: Sequence[Base]) -> list[Base]:
    """The readouts, which suit each other."""
    found = list(readouts)
    if len(found) < 2:
        raise ValueError(f"readouts: found {len(found)}, expected two or more to mix")
    for k, readout in enumerate(found):
        _check_one(f"readouts[{k}]", readout)
        if any(readout is other for other in found[:k]):
            raise ValueError(
                f"readouts[{k}]: found one that is there already, expected one of its own; copy.deepcopy makes it"
            )
        for name in ("classes", "width"):
            one, other = getattr(readout, name), getattr(found[0], name)
            if one != other:
                raise ValueError(f"readouts[{k}]: found {one} as {name}, expected {other}, as of the first")
    return found


def _check_one(name: str, readout: Any) -> None:
    if not isinstance(readout, Base) or readout.kind in ("sampled", "label_tree"):
        raise ValueError(
            f"{name}: found {type(readout).__name__}, expected a readout that knows the probability of one class exactly and "
            "cheaply, such as TreeReadout: what each answers for is a share of it"
        )
    if not readout.backend.device.host_memory:
        raise ValueError(
            f'{name}: found one on "{readout.backend.name}", expected one on the CPU; make it without backend'
        )


def make(
    counts: Any,
    width: int,
    options: Mapping[str, Any],
    *,
    batch: int,
    trunk: bool = True,
    backend: Any = None,
) -> MixtureReadout:
    """From options of the command line; see hybrid/readout/__init__.py."""
    from .tree import TreeReadout

    shapes = options.get("trees") or SHAPES
    check.whole("trees", len(shapes), 2, MOST)
    given = {name: options[name] for name in ("rate", "seed")} | sparse.readout_named(options)
    return MixtureReadout(
        [TreeReadout(counts, width, tree=shape, batch=batch, backend=backend, **given) for shape in shapes]
    )


def rebuild(readouts: Sequence[dict[str, Any]], backend: Any = None, **facts: Any) -> MixtureReadout:
    """From describe()."""
    made: list[Any] = [rebuild_readout(told, backend) for told in readouts]
    return MixtureReadout(made, **facts)


def least(readouts: Sequence[dict[str, Any]], **facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return sum(map(least_of, readouts))
