"""What a seed draws of a Predictive Vision Model."""

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hybrid.pvm.config import Config, Readout
from hybrid.pvm.model import PVM
from tests.soak.case import Outcome, Way

FRAMES = 29  # that a feed has, over and over


class Scene:
    """A square that moves over noise, in every stream from another place; labelled in some frames."""

    def __init__(self, case: "PVMCase"):
        self._ticks, self.streams = case.ticks, case.streams
        rng = np.random.default_rng(case.seed)
        self._made = [self._frame(case.config.frame, number, rng) for number in range(FRAMES)]

    def _frame(self, shape: tuple[int, int, int], number: int, rng: np.random.Generator) -> Any:
        images = rng.integers(0, 90, (self.streams, *shape)).astype(np.uint8)
        boxes = np.zeros((self.streams, 4), np.float32)
        for stream, box in enumerate(boxes):
            y, x = (number + stream) % shape[0], (number + 3 * stream) % shape[1]
            images[stream, y : y + 2, x : x + 3] = 255
            box[:] = x, y, min(3, shape[1] - x), min(2, shape[0] - y)
        return SimpleNamespace(image=images, box=boxes, labelled=np.full(self.streams, number % 3 > 0))

    def __len__(self) -> int:
        return self._ticks

    def __getitem__(self, tick: int) -> Any:
        return self._made[tick % FRAMES]


class PVMCase:
    """A model of a few units; everything below is drawn from the seed."""

    def __init__(self, seed: int, ticks: int, device: str = "cpu"):
        rng = random.Random(f"pvm {seed}")
        self.seed, self.ticks, self.device = seed, ticks, device
        self.streams = rng.choice([1, 1, 2, 3])
        rate = rng.choice([0.01, 0.05])
        unit = rng.choice(["simple", "complex", "residual", "complex_residual"])
        wiring = rng.choice(["cuda", "classic"])
        free = wiring == "classic" and "residual" not in unit  # to have other features than those two, of one frame
        readout = Readout(hidden=(rng.randint(2, 6),), schedule=((0, 0.3), (ticks // 3, 0.1)))
        self.config = Config(
            grids=rng.choice([((3, 4), (2, 2), (1, 1)), ((2, 3), (1, 1)), ((2, 2),)]),
            block=(rng.randint(1, 3), rng.randint(1, 3)),
            hidden=(rng.randint(2, 7),),
            unit=unit,
            wiring=wiring,
            features=("signal", "derivative", "integral", "error")
            if free and rng.random() < 0.7
            else ("signal", "past"),
            activation=rng.choice(["logistic", "rational", "tanh"]),
            publish=rng.choice(["raw", "minmax"]),
            predict_steps=rng.choice([1, 2]) if free else 2,
            schedule=(
                (0, None, rate, rng.choice([0.0, 0.3])),
                (ticks // 2, None, rate / 2, None),
                (ticks // 3, 0, 0.0, None),
            ),
            readout=rng.choice([None, readout]),
        )
        self.ranks = rng.randint(2, 4)
        self.settings = {"every": rng.choice([1, 1, 3]), "ahead": rng.choice([0, 3])}

    def __str__(self) -> str:
        told = {name: getattr(self.config, name) for name in ("grids", "unit", "wiring", "features", "publish")}
        return f"pvm on {self.device}, {self.streams} streams, {told}, {self.ticks} ticks, {self.settings}"

    def feed(self) -> Scene:
        return Scene(self)

    def make(self, way: Way, ranks: Any = None) -> PVM:
        settings = {"device": self.device, "streams": self.streams, "threads": way.threads, "seed": self.seed}
        return PVM(self.config, ranks=ranks, **settings)

    def serial(self) -> Outcome:
        """Step by step."""
        model, feed, seen = self.make(Way(1, False)), self.feed(), {}
        for tick in range(self.ticks):
            batch = feed[tick]
            image, box = (batch.image[0], batch.box[0]) if self.streams == 1 else (batch.image, list(batch.box))
            seen[tick] = self._bytes(model.step(image, box if batch.labelled.all() else None))
        return Outcome(seen, self.held(model))

    def load(self, folder: Path, way: Way) -> PVM:
        return PVM.load(folder, device=self.device, threads=way.threads)[0]

    def copy(self, model: PVM) -> PVM:
        made = self.make(Way(model.threads, None))
        made.settle()
        made.put(model.fetch())
        made.tick = model.tick
        return made

    def run(self, model: PVM, feed: Any) -> Iterator[tuple[int, bytes]]:
        for seen in model.run(feed, **self.settings):
            yield seen.tick, self._bytes(seen)

    def ask(self, model: PVM) -> None:
        if model.tick:
            model.prediction(), model.weights_of(0), model.receptive_field(0, 0)

    def held(self, model: PVM) -> dict[str, bytes] | None:
        if model.ranks:
            return None
        return {name: array.tobytes() for name, array in model.fetch().items()}

    def _bytes(self, seen: Any) -> bytes:
        """All of a tick, or, of one that is not complete, its error."""
        if seen.tick % self.settings["every"]:
            return bytes(seen.error.tobytes())
        parts = [seen.error, seen.prediction, *seen.hidden, *seen.heatmaps]
        return b"".join(part.tobytes() for part in parts)
