"""What a seed draws of an engine: the language it learns, its parts and settings; and what is asked of any case."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.engine.inputs import Inputs
from hybrid.engine.scale import SCHEDULES
from hybrid.engine.trunk.mlp import MLP, Trunk
from hybrid.feeds import Batch
from hybrid.readout import (
    FullReadout,
    HeadReadout,
    LabelTreeReadout,
    MixtureReadout,
    NeighbourReadout,
    SampledReadout,
    TreeReadout,
)
from tests.soak import serial

BATCHES = 37  # that a feed has, over and over

READOUTS = {  # by name: counts, width and what all take
    "tree": lambda counts, width, **more: TreeReadout(counts, width, **more),
    "balanced tree": lambda counts, width, **more: TreeReadout(counts, width, tree="balanced", **more),
    "tree by groups": lambda counts, width, **more: TreeReadout(counts, width, mode="batch", together=3, **more),
    "split tree": lambda counts, width, **more: TreeReadout(counts, width, split=4, **more),
    "full": lambda counts, width, **more: FullReadout(counts, width, **more),
    "sampled": lambda counts, width, **more: SampledReadout(counts, width, negatives=5, **more),
    "logistic": lambda counts, width, **more: SampledReadout(counts, width, loss="logistic", negatives=3, **more),
    "gbce": lambda counts, width, **more: SampledReadout(counts, width, loss="gbce", negatives=4, **more),
    "head": lambda counts, width, **more: HeadReadout(counts, width, head=4, clusters=3, **more),
    "head of softmaxes": lambda counts, width, **more: HeadReadout(
        counts, width, head=4, clusters=3, tails="softmax", **more
    ),
    "mixture": lambda counts, width, **more: MixtureReadout(
        [TreeReadout(counts, width, tree=shape, **more) for shape in ("huffman", "balanced")], pace=0.1
    ),
    "neighbours": lambda counts, width, **more: NeighbourReadout(FullReadout(counts, width, **more), every=50),
    "label tree": lambda counts, width, **more: LabelTreeReadout(counts, width, **more),
}
RULES: list[dict[str, Any]] = [{}, {"optimiser": "row-adagrad"}, {"optimiser": "adagrad"}]


class Way(NamedTuple):
    """How a model computes; no number depends on it."""

    threads: int
    overlap: bool | None

    @classmethod
    def drawn(cls, rng: random.Random) -> "Way":
        return cls(rng.randint(2, 4), rng.choice([False, True, None]))


class Outcome(NamedTuple):
    """What a run gave.

    ticks   of each tick the bytes that its caller got
    model   all that the model is in the end; None: of a rank that has a part of it
    unseen  ticks that the caller did not get, since the run ended behind them by an interrupt, or while a GPU was ahead
    """

    ticks: dict[int, bytes]
    model: dict[str, bytes] | None
    unseen: frozenset[int] = frozenset()


class Case(Protocol):
    """What a seed draws, of any kind of model.

    device  on which it learns
    ranks   how many can share it; 0: none
    """

    seed: int
    ticks: int
    device: str
    ranks: int
    settings: dict[str, Any]

    def serial(self) -> Outcome:
        """Without anything that overlaps, or happens."""

    def make(self, way: Way, ranks: Any = None) -> Any:
        """The model at its beginning."""

    def load(self, folder: Path, way: Way) -> Any:
        """The model of a checkpoint."""

    def copy(self, model: Any) -> Any:
        """A model that shares nothing with this one, and stands where it stands."""

    def feed(self) -> Any:
        """What it learns from."""

    def run(self, model: Any, feed: Any) -> Iterator[tuple[int, bytes]]:
        """Each tick by its number."""

    def ask(self, model: Any) -> None:
        """What a caller may ask between two ticks."""

    def held(self, model: Any) -> dict[str, bytes] | None:
        """All that it is; None of one that ranks share, where each has a part."""


class Little:
    """A little language: targets are a fixed function of ids or numbers; batches are of any size up to their most, or empty."""

    epochs = 1

    def __init__(self, case: "EngineCase"):
        numbers = case.kind == "numbers"
        self.rows, self.width = (0, case.width) if numbers else (case.rows, 0)
        self.ticks_per_epoch, self.classes, self.batch, self.counts = case.ticks, case.classes, case.batch, case.counts
        self.most_ids = 0 if self.width else 5 * case.batch
        self._made = [_batch(case, np.random.default_rng([case.seed, number])) for number in range(BATCHES)]
        self.most_targets = max(len(batch.target) for batch in self._made)

    def __len__(self) -> int:
        return self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        return self._made[tick % BATCHES]

    def describe(self) -> dict[str, Any]:
        return {"kind": "soak"}


def _batch(case: "EngineCase", rng: np.random.Generator) -> Batch:
    size = int(rng.choice([case.batch, case.batch, rng.integers(0, case.batch + 1)]))
    weight = (rng.integers(0, 3, size) / 2).astype(np.float32) if case.weighed and rng.random() < 0.7 else None
    target_at = np.concatenate([[0], np.cumsum(rng.integers(0, 4, size))]) if case.several else None
    target = rng.integers(0, case.classes, size if target_at is None else target_at[-1]).astype(np.int32)
    if case.kind == "numbers":
        x = rng.normal(size=(size, case.width)).astype(np.float32)
        return Batch(None, None, target, weight, None, x, target_at)
    bag_at = values = None
    count = size * case.context
    if case.kind in ("bags", "values"):
        bag_at = np.concatenate([[0], np.cumsum(rng.integers(0, 6, size))])
        count = int(bag_at[-1])
        values = rng.normal(size=count).astype(np.float32) if case.kind == "values" else None
    ids = rng.integers(0, case.rows, count).astype(np.int32)
    return Batch(ids, bag_at, target, weight, values, None, target_at)


class EngineCase:
    """An engine; everything below is drawn from the seed."""

    device = "cpu"

    def __init__(self, seed: int, ticks: int):
        rng = random.Random(f"engine {seed}")
        self.seed, self.ticks = seed, ticks
        self.kind = rng.choice(["context", "context", "bags", "values", "numbers"])
        deep = rng.choice(["none", "unit", "unit", "mlp"]) if self.kind != "numbers" else rng.choice(["unit", "mlp"])
        self.context = rng.randint(1, 4) if deep != "none" else 1
        self.width, self.hidden = rng.randint(2, 6), rng.randint(2, 6)
        self.rows, self.classes = rng.randint(8, 40), rng.randint(12, 40)
        self.batch, self.weighed = rng.randint(1, 12), rng.random() < 0.3
        self.counts = np.array([rng.randint(0, 99) for _ in range(self.classes)])
        self.readout = rng.choice(list(READOUTS))
        self.several = self.readout == "label tree"
        self.depth = deep
        self.rule, self.other_rule = rng.choice(RULES), rng.choice(RULES)
        self.optimiser = rng.choice(["sgd", "adam", "adamw", "adagrad", "nesterov"])
        self.deep = {"dropout": rng.choice([0, 0.3]), "layer_norm": rng.random() < 0.5, "residual": rng.random() < 0.5}
        self.settings: dict[str, Any] = {
            "micro_batches": rng.randint(1, min(4, self.batch)),
            "delay": rng.choice([0, 0, 1, 1, 1]),
            "schedule": rng.choice(list(SCHEDULES)),
            "warmup": rng.choice([0, ticks // 10]),
        }
        shared = deep != "none" and not self.settings["delay"] and self.settings["micro_batches"] > 1
        self.ranks = rng.randint(2, self.settings["micro_batches"]) if shared else 0

    def __str__(self) -> str:
        return (
            f"engine of {self.kind}, trunk {self.depth}, {self.readout}, batch {self.batch}, {self.ticks} ticks, "
            f"{self.settings}"
        )

    def feed(self) -> Little:
        return Little(self)

    def make(self, way: Way, ranks: Any = None) -> Engine:
        embedding: Any = Inputs(self.width) if self.kind == "numbers" else Embedding(**self.of_rows())
        width = embedding.outputs if self.depth == "none" else self.hidden
        readout = READOUTS[self.readout](self.counts, width, **self.of_readout())
        settings = self.settings | way._asdict() | {"device": "cpu", "ranks": ranks}
        return Engine(embedding, self._trunk(embedding.outputs), readout, **settings)

    def of_rows(self) -> dict[str, Any]:
        """Arguments of the embedding."""
        shape = {
            "per_example": self.context,
            "mean": self.kind in ("bags", "values"),
            "weighted": self.kind == "values",
        }
        sizes = {"rows": self.rows, "width": self.width, "rate": 0.02, "spread": 0.3, "seed": self.seed}
        return sizes | shape | self.rule

    def of_readout(self) -> dict[str, Any]:
        """Those that all readouts take."""
        return {"batch": self.batch, "rate": 0.02, "seed": self.seed} | self.other_rule

    def _trunk(self, inputs: int) -> Any:
        if self.depth == "none":
            return None
        if self.depth == "unit":
            return Trunk(inputs, 5, self.hidden, rate=0.05, momentum=0.5, seed=self.seed)
        moves = {"optimiser": self.optimiser, "rate": 0.01, "clip": 1.0, "seed": self.seed}
        return MLP((inputs, 6, 6, self.hidden), "tanh", **self.deep, **moves)

    def serial(self) -> Outcome:
        engine = self.make(Way(1, False))
        return Outcome(serial.run(engine, self.feed()), self.held(engine))

    def load(self, folder: Path, way: Way) -> Engine:
        return Engine.load(folder, device="cpu", **way._asdict())[0]

    def copy(self, model: Engine) -> Engine:
        return copy.deepcopy(model)

    def run(self, model: Engine, feed: Any) -> Iterator[tuple[int, bytes]]:
        for tick in model.run(feed):
            yield tick.number, np.float64(tick.loss).tobytes()

    def ask(self, model: Engine) -> None:
        batch = next(batch for batch in (Little(self)[tick] for tick in range(BATCHES)) if batch.examples)
        asked = (
            {"x": batch.x} if batch.ids is None else {"ids": batch.ids, "bag_at": batch.bag_at, "values": batch.values}
        )
        model.best(k=3, **asked)
        model.scores(**asked)

    def held(self, model: Engine) -> dict[str, bytes]:
        arrays = {name: array.tobytes() for name, array in model.parameters().items()}
        return arrays | {"state": repr(model.readout.state()).encode()}
