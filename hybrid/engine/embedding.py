"""Inputs of a trunk: sparsely updated table rows, or numbers from the feed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import backend as backends
from .. import check, optimisers, sparse
from ..backend import fetch_arrays, send_arrays
from ..schedule.schedule import Buffers, Copies, Stage
from ..schedule.slot import Slot

BAGS = ("mean", "undivided", "weighted")


class Embedding:
    """A table of `rows` vectors of `width` numbers.

    per_example  ids per example; their vectors are concatenated (1: the vector itself)
    bags         None, or the reduction of a bag of any number of ids. "mean": the mean of their vectors; "undivided": the
                 mean, but every vector receives the full gradient, as in word2vec; "weighted": the sum of values times
                 vectors, with one value per id in the batch
    optimiser    of the rows: "sgd", "row-adagrad" or "adagrad", or one with a rate, such as hybrid.SGD(0.1), which applies to
                 the loss summed over a batch (default: 0.05)
    spread       rows are initialised uniformly in [-spread, spread]; default 0.5 / width, as in word2vec
    backend      of the rows, from hybrid.backend.choose (None: the CPU). On the trunk's GPU, `table` is the host's copy

    Copies and pickles have their own rows, on a device of the same name. Raises ValueError for sizes below 1, rows beyond
    int32 ids, a negative or non-finite spread, an optimiser without row support, and `per_example` with `bags`.
    """

    dense = 0  # numbers per example in x; 0: the batch has ids instead

    def __init__(
        self,
        rows: int,
        width: int,
        *,
        per_example: int = 1,
        bags: str | None = None,
        optimiser: str | optimisers.Optimiser = "sgd",
        spread: float | None = None,
        seed: int = 0,
        backend: Any = None,
    ):
        self.rows = check.whole("rows", rows, 1, 2**31 - 1)
        self.per_example = check.whole("per_example", per_example, 1, 2**31 - 1)
        self.width = check.whole("width", width, 1, (2**31 - 1) // self.per_example)
        self.outputs = self.width * self.per_example  # numbers per example in x
        self.bags = None if bags is None else check.choice("bags", bags, BAGS)
        if bags and per_example != 1:
            raise ValueError(f"per_example: found {per_example} with bags={bags!r}, expected 1: a bag has any size")
        self.optimiser, self.rate = optimisers.of_rows(optimiser, 0.05)
        self.seed = check.whole("seed", seed, 0)
        self.spread = 0.5 / self.width if spread is None else check.number("spread", spread, 0)
        self.table, self._shared = self._drawn(0, self.rows), False
        self.backend = backends.given(backend)
        self.beside = not self.backend.device.host_memory  # True: the rows are on the trunk's GPU
        self._queue = "dense" if self.beside else "sparse"
        if bags == "undivided" and self.beside:
            raise ValueError(
                f'bags: found "undivided" with rows on {self.backend.name}, expected "mean": the other is word2vec\'s, which '
                "has no trunk"
            )
        self._host = sparse.kept(self.table, self.optimiser)
        self._there = sparse.mirrored(self._host, self.backend.device)

    def _drawn(self, first: int, last: int) -> np.ndarray:
        """Returns the initial values of rows first..last - 1."""
        source, before = np.random.default_rng([self.seed, 1]), first * self.width
        source.bit_generator.advance(before // 2)  # type: ignore[attr-defined]  # each draw of 64 bits makes two numbers
        source.random(before % 2, np.float32)
        drawn = source.random((last - first, self.width), np.float32)
        drawn -= 0.5
        drawn *= 2 * self.spread
        return drawn

    def add_rows(self, count: int, at: int | None = None) -> None:
        """Adds `count` rows; existing rows keep their trained values.

        at  number of the first new row, 0 to R; later rows are renumbered by `count`. None: R, at the end. For a feed whose
            last row stands for padding, as in LanguageFeed, the number of that row

        A new row starts as in a table created with that many rows, its squares at 0. Call it between two steps; with `at`,
        only after the run has ended, since its feed uses the old numbers.

        Raises ValueError for a number out of range, and for a table shared with a readout (tied); then nothing changes.
        """
        first, most = self.rows, 2**31 - 1
        check.whole("count", count, 1, most - first)
        at = first if at is None else check.whole("at", at, 0, first)
        if self._shared:
            raise ValueError("rows: found a table that a readout shares (tied), expected its own; make it untied")
        fetch_arrays(self.backend.device, self._pairs())
        stay = np.r_[0:at, at + count : first + count]
        self.rows = first + count
        self.table = sparse.table(self.rows, self.width)
        self.table[at : at + count] = self._drawn(first, self.rows)
        before, self._host = self._host, sparse.kept(self.table, self.optimiser)
        for ours, theirs in zip(self._host, before, strict=True):
            if ours is not None:
                ours[stay] = theirs
        self._there = sparse.mirrored(self._host, self.backend.device)

    def vectors(self) -> np.ndarray:
        """Returns the current rows from the device."""
        return self.parameters()["table"]

    def buffers(self) -> Buffers:
        """Returns the buffers: ids are copied for rows on the trunk's GPU, vectors and gradients for rows on the host."""
        ids = ("ids", "bag_at", "values") if self.bags == "weighted" else ("ids", "bag_at") if self.bags else ("ids",)
        return Buffers(dict.fromkeys(("x", "x_grad"), self.outputs), ids if self.beside else ("x", "x_grad"))

    def begin(self, copy: Copies) -> list[Stage]:
        gather = Stage("gather", self._queue, self._gather, ("ids in", "bag_at in"))
        return [*copy("ids in"), *copy("bag_at in"), gather, *copy("x in", "gather")]

    def last(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        return [Stage("scatter", self._queue, self._scatter, ready)]

    def _gather(self, slot: Slot) -> None:
        x, bag_at, ids, values = self._arrays(slot, "x")
        self.forward(x, bag_at, ids, values)

    def _scatter(self, slot: Slot) -> None:
        x_grad, bag_at, ids, values = self._arrays(slot, "x_grad")
        self.backward(bag_at, ids, x_grad, slot.scale, values)

    def _arrays(self, slot: Slot, name: str) -> list[Any]:
        """Returns an array of a slot, bag_at, ids and values, in the memory of the rows."""
        end = "_dev" if self.beside else ""
        return [getattr(slot, f"{one}{end}") for one in (name, "bag_at", "ids", "values")]

    def forward(self, x: Any, bag_at: Any, ids: Any, values: Any = None) -> None:
        """Writes x (B, outputs), within the work of a queue; all are arrays of the device; bag_at and values may be None."""
        table = self._there.rows
        if bag_at is not None:
            self.backend.rows.gather_mean(x, table, bag_at, ids, values)
        else:
            self.backend.rows.gather(x.reshape(-1, self.width), table, ids)

    def backward(self, bag_at: Any, ids: Any, x_grad: Any, scale: float, values: Any = None) -> None:
        """Updates the rows of the ids by x_grad (B, outputs) with `scale` times the rate; arrays as in `forward`."""
        learned, rate = self._there, self.rate * scale
        if bag_at is not None:
            if self.bags == "undivided":
                x_grad *= np.diff(bag_at)[:, None]
            self.backend.rows.scatter_mean(learned, bag_at, ids, values, x_grad, rate)
        else:
            self.backend.rows.scatter(learned, ids, x_grad.reshape(-1, self.width), rate)

    def inputs(self, bag_at: Any, ids: Any, scale: float) -> Any:
        """Returns the rows of a batch for cpu/words.py, updated with `scale` times the rate."""
        from cpu.words import Inputs

        return Inputs(self._there, self.rate * scale, bag_at, ids)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the current rows and their optimiser state by name; on the CPU the live arrays."""
        fetch_arrays(self.backend.device, self._pairs())
        return {"table": self.table} | sparse.beside(self._host)

    def take(self, rows: np.ndarray) -> None:
        """Replaces the table, on the CPU: (rows, width) float32, which may be shared."""
        self.table, self._shared = rows, True
        self._host, self._there = (learned._replace(rows=rows) for learned in (self._host, self._there))

    def send(self) -> None:
        send_arrays(self.backend.device, self._pairs())

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        return sparse.pairs(self._host, self._there)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.describe(), self.backend.name, self.parameters())

    def describe(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in ("rows", "width", "per_example")}
        facts |= {"mean": self.bags is not None, "undivided": self.bags == "undivided"}
        facts |= {name: getattr(self, name) for name in ("rate", "spread", "seed")}
        return facts | sparse.describe(self.optimiser) | ({"weighted": True} if self.bags == "weighted" else {})


def rebuild(facts: Mapping[str, Any], backend: Any) -> Embedding:
    """Returns an embedding from describe(), with its initial rows."""
    own = dict(facts)
    mean, undivided, weighted = (own.pop(name, False) for name in ("mean", "undivided", "weighted"))
    bags = ("weighted" if weighted else "undivided" if undivided else "mean") if mean else None
    optimiser = optimisers.named(own.pop("optimiser", "sgd"), optimisers.ROWS, rate=own.pop("rate"))
    return Embedding(**own, bags=bags, optimiser=optimiser, backend=backend)


def _again(facts: dict[str, Any], device: str, arrays: dict[str, np.ndarray]) -> Embedding:
    made = rebuild(facts, backends.again("embedding", device))
    held = made.parameters()
    for name, array in arrays.items():
        held[name][:] = array
    made.send()
    return made


class Inputs:
    """A substitute for Embedding if a feed's batches have `x` instead of ids: pixels, features.

    width  numbers per example

    It trains nothing, and x is copied once into a slot and once to a GPU. Raises ValueError for a width below 1.
    """

    kind = "inputs"
    bags = None
    rows = per_example = 0

    def __init__(self, width: int):
        self.dense = self.outputs = check.whole("width", width, 1)
        self.backend = backends.choose("cpu")

    def buffers(self) -> Buffers:
        return Buffers(dict.fromkeys(("x", "x_grad"), self.outputs), ("x",))

    def begin(self, copy: Copies) -> list[Stage]:
        return copy("x in")

    def last(self, copy: Copies, ready: tuple[str, ...]) -> list[Stage]:
        return []

    def parameters(self) -> dict[str, np.ndarray]:
        return {}

    def send(self) -> None:
        """Does nothing."""

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "width": self.dense}

    def __reduce__(self) -> tuple[Any, ...]:
        return Inputs, (self.dense,)
