"""What a seed draws of models on the simulated GPU: fewer ticks, since its launches take milliseconds."""

import random
from pathlib import Path
from typing import Any

from hybrid import backend
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.engine.inputs import Inputs
from tests import cudasim
from tests.cudasim import cublas
from tests.soak.case import READOUTS, EngineCase, Outcome, Way
from tests.soak.pvm_case import PVMCase

FEWER = 20
CUDA = "cuda:0"
THERE = ("tree", "balanced tree", "tree by groups", "split tree", "full")  # readouts that compute on a GPU


def start() -> None:
    """Load the simulated driver, once, before anything asks for a GPU."""
    cudasim.start()
    cublas.use()
    from gpu import blas

    blas.Handle._room = lambda handle: 1 << 16  # as tests/gpu/conftest.py does: poison takes time


class GpuEngineCase(EngineCase):
    """An engine whose trunk is on the GPU, and perhaps its rows and its readout."""

    def __init__(self, seed: int, ticks: int):
        super().__init__(seed, max(10, ticks // FEWER))
        rng = random.Random(f"gpu {seed}")
        self.device, self.ranks = CUDA, 0
        self.depth = rng.choice(["unit", "mlp"])
        self.places = {"rows_device": rng.choice(["cpu", CUDA]), "readout_device": rng.choice(["cpu", CUDA])}
        if self.kind == "numbers":
            self.places["rows_device"] = "cpu"
        if self.places["readout_device"] == CUDA or self.readout == "split tree":
            self.readout, self.several = rng.choice(THERE), False
            self.places["readout_device"] = CUDA

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.places}"

    def make(self, way: Way, ranks: Any = None) -> Engine:
        start()
        embedding: Any = Inputs(self.width)
        if self.kind != "numbers":
            embedding = Embedding(**self.of_rows(), backend=backend.choose(self.places["rows_device"]))
        there = backend.choose(self.places["readout_device"])
        readout = READOUTS[self.readout](self.counts, self.hidden, backend=there, **self.of_readout())
        settings = self.settings | way._asdict() | {"device": CUDA}
        return Engine(embedding, self._trunk(embedding.outputs), readout, **settings)

    def load(self, folder: Path, way: Way) -> Engine:
        return Engine.load(folder, device=CUDA, **self.places, **way._asdict())[0]


class GpuPVMCase(PVMCase):
    """A PVM on the GPU."""

    def __init__(self, seed: int, ticks: int):
        super().__init__(seed, max(10, ticks // FEWER), CUDA)
        self.ranks = 0

    def serial(self) -> Outcome:
        start()
        return super().serial()
