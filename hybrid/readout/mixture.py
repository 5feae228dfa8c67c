"""The mixture readout: the probabilities of several readouts over the same classes, averaged with learned weights."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import check, sparse
from ..settings import names, option, positive
from . import least as least_of
from . import rebuild as rebuild_readout
from .base import Base

if TYPE_CHECKING:
    from cpu.excluded import Excluded

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
    components: int | None = option(
        None, "mixture readout: how many trees; shapes are taken in turn (default: one of each)", type=positive
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
        from .base.threshold import mixed

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
        from .base.threshold import mixed

        found = np.empty((len(self.readouts), len(hidden)), np.float32)
        for readout, own in zip(self.readouts, found, strict=True):
            readout._score(own, hidden, target)
        out[:] = mixed(found, self.shares)

    def _find(self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray) -> None:
        self._best_without(ids, log_probs, hidden, None)

    def _best_without(
        self, ids: np.ndarray, log_probs: np.ndarray, hidden: np.ndarray, left_out: "Excluded | None"
    ) -> None:
        from .base import threshold
        from .tree import TreeReadout

        rows = np.arange(len(hidden))
        if all(isinstance(readout, TreeReadout) for readout in self.readouts):
            most = self.classes // (DEEP * len(self.readouts))
            rows = threshold.best(ids, log_probs, self.readouts, self.shares, hidden, left_out, most)
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
    components = check.whole("components", options.get("components") or len(shapes), 1, MOST)
    given = {name: options[name] for name in ("rate", "seed")} | sparse.readout_named(options)
    return MixtureReadout(
        [
            TreeReadout(counts, width, tree=shapes[k % len(shapes)], batch=batch, backend=backend, **given)
            for k in range(components)
        ]
    )


def rebuild(readouts: Sequence[dict[str, Any]], backend: Any = None, **facts: Any) -> MixtureReadout:
    """From describe()."""
    made: list[Any] = [rebuild_readout(told, backend) for told in readouts]
    return MixtureReadout(made, **facts)


def least(readouts: Sequence[dict[str, Any]], **facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return sum(map(least_of, readouts))
