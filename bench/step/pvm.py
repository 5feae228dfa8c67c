"""Frames per second of the Predictive Vision Model: 211 M parameters in a flat layer, and the hierarchy `small`.

Before timing, a tick of five units is checked against float64. A frame is a tick of `PVM.run`: a byte image goes in, the units
learn, the error is read. All results are read every 25th frame; in between, 4 ticks of a GPU may be in flight.
"""

import functools
import itertools
import statistics
import time
from typing import Any, NamedTuple

import numpy as np

from bench.harness.measure import Work, append, measure, near, peer, show
from bench.oracles import pvm as oracle
from hybrid.backend import choose

FRAMES, EVERY, AHEAD, SEED = 8, 25, 4, 0
RATE = 0.001
TINY: dict[str, Any] = {"name": "tiny", "grids": (3, 1), "hidden": 9}  # for a functional test


def run(arguments) -> None:
    """Measures flat210m without and with momentum, small without and with trained readouts, small with 4 streams."""
    check_tick("cpu")
    for case in cases(arguments.quick):
        ours = Ours(case, "cpu", arguments.threads)
        works = [ours.work(arguments.threads), *rivals(case, arguments.threads)]
        records = measure(works, arguments.repeat)
        records[0] |= shares(ours, arguments.repeat)
        show(records)
        print(bound(ours, records[0]), flush=True)
        append(arguments.json, records)


class Case(NamedTuple):
    """A measured case: a named configuration, its streams, momentum for all layers, trained readouts or not."""

    config: str
    streams: int = 1
    momentum: float = 0.1
    readouts: bool = False

    @property
    def frames(self) -> int:
        """The frames of a sample: some tenths of a second, which makes the first frame after a pause negligible."""
        return 6 if self.config == "flat210m" else 30


BARS = {
    Case("flat210m", momentum=0.0): ("bandwidth_share", 0.85),
    Case("flat210m", momentum=0.5): ("bandwidth_share", 0.85),
    Case("small"): ("value", 60.0),
}


def cases(quick: bool) -> list[Case]:
    """Returns all cases; with `quick` the smallest."""
    small = [Case("small"), Case("small", readouts=True), Case("small", streams=4)]
    return [Case(TINY["name"])] if quick else [Case("flat210m", momentum=0.0), Case("flat210m", momentum=0.5), *small]


def check_tick(device: str) -> None:
    """Raises AssertionError unless a tick on a device equals that of float64."""
    backend = choose(device)
    queue = backend.device.inline("check", 1)
    put, get = backend.device.from_host, backend.device.to_host
    for streams in (1, 3):
        made = oracle.small(np.random.default_rng(SEED), streams, momentum=True)
        checks = oracle.checks(
            backend.pvm,
            made,
            lambda work, *arguments: queue.run(work, *arguments).wait(),
            lambda array: put(array.copy()),  # the CPU would use the array itself
            get,
        )
        for name, found, expected, first in checks:
            near(name, found, expected, first)


class Feed:
    """A few random frames that repeat, with a box in each."""

    def __init__(self, shape: tuple[int, int, int], case: Case):
        rng = np.random.default_rng(SEED)
        self.images = rng.integers(0, 256, (FRAMES, case.streams, *shape), np.uint8)
        self.box = np.tile(
            np.array([shape[1] / 4, shape[0] / 4, shape[1] / 3, shape[0] / 3], np.float32), (case.streams, 1)
        )
        self.labelled = np.full(case.streams, case.readouts)

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, tick: int):
        from hybrid.feeds.video.frames import FrameBatch

        return FrameBatch(self.images[tick % FRAMES], self.box, self.labelled)


class Ours:
    """A model that learns at every tick."""

    def __init__(self, case: Case, device: str, threads: int):
        from dataclasses import replace

        from hybrid.pvm.config import Config
        from hybrid.pvm.model import PVM
        from hybrid.pvm.presets import load

        config = Config(**TINY) if case.config == TINY["name"] else load(case.config)[0]
        readout = config.readout if case.readouts else None
        schedule = ((0, None, RATE, case.momentum),)
        self.case, self.config = case, replace(config, schedule=schedule, readout=readout)
        self.pvm = PVM(self.config, device=device, threads=threads, streams=case.streams)
        self.feed = Feed(self.pvm.wiring.frame, case)
        self.frames = self.pvm.run(self.feed, every=EVERY, ahead=AHEAD)
        self.parameters = self.pvm.size[0]
        read = self.pvm.size[1]
        self.moved = (16 if case.momentum else 8) * self.parameters + 16 * read
        self.before = self.sample()

    def sample(self) -> np.ndarray:
        """Returns some of the first unit's current weights."""
        return np.array(self.pvm.backend.device.to_host(self.pvm.weights[:1000]))

    def check(self) -> None:
        """Checks that ticks learn and errors are finite; `check_tick` has verified the values."""
        *_, seen = itertools.islice(self.frames, 3)  # first matrices learn from the frame two ticks ago
        if not np.isfinite(seen.error).all() or np.array_equal(self.before, self.sample()):
            raise ValueError(f"{self.case}: nothing was learned")

    def held(self) -> float:
        """Returns the bytes of the units and their state, relative to weights, momentum and tapes alone."""
        arrays = {name: array.nbytes for name, array in self.pvm.arrays().items() if not name.startswith("readout")}
        least = sum(size for name, size in arrays.items() if name in ("weights", "velocity") or name.startswith("tape"))
        return (sum(arrays.values()) + arrays["tape_0"]) / least  # plus the back-propagated gradients, a tape's size

    def work(self, threads: int) -> Work:
        """Returns the model as a rival."""
        params = self.case._asdict()
        more = {"parameters": self.parameters, "readout_parameters": self.pvm.size[1], "memory_over_least": self.held()}
        step = functools.partial(self.learn, self.case.frames)
        work = ("pvm.frame", "ours", params, self.case.frames, "frames/s", step, self.check)
        return Work(*work, threads=threads, warm=1, more=more)

    def learn(self, frames: int) -> None:
        """Processes `frames` more frames."""
        for _ in itertools.islice(self.frames, frames):
            pass


def frame_input(model, feed: Feed, tick: int | None = None):
    """Returns the input of a slot for a tick, or the model's next one; its first tick has nothing to learn from."""
    from hybrid.pvm.slot import FrameInput, Rates

    tick = model.tick if tick is None else tick
    rates = Rates(model.pipeline.layer, model.layout, model.config).at(tick, model.frozen)
    return FrameInput(feed[tick].image, None, False, rates)


def shares(ours: Ours, repeat: int) -> dict:
    """Returns the share of the bandwidth that ours uses: some frames between two passes over the same weights, repeated.

    The machine's bandwidth drifts within seconds, and one array may be in faster memory than another.
    """
    from cpu.runtime.memory import pass_over

    moving = [array for array in (ours.pvm.weights, ours.pvm.velocity) if array is not None]
    frames, speeds = -(-ours.case.frames // 3), []
    pass_over(moving)  # compiles
    passes = [pass_over(moving)]
    for _ in range(5 * repeat):
        start = time.perf_counter()
        ours.learn(frames)
        speeds.append(ours.moved * frames / (time.perf_counter() - start))
        passes.append(pass_over(moving))
    around = [2 / (1 / before + 1 / after) for before, after in itertools.pairwise(passes)]
    found = [speed / least for speed, least in zip(speeds, around, strict=True)]
    return {
        "bandwidth_share": statistics.median(found),
        "bandwidth_shares": [round(share, 3) for share in found],
        "bandwidth": statistics.median(around),
        "bytes_a_second": statistics.median(speeds),
    }


def rivals(case: Case, threads: int) -> list[Work]:
    """Returns the same tick in PyTorch, if one product serves all units: the flat layer."""
    if case.config != "flat210m":
        return []
    torch = peer("torch")
    if not torch:
        return []
    torch.set_num_threads(threads)
    return [Torch(case).work(threads)]


class Torch:
    """The flat layer in PyTorch: products of all units by bmm, manual backward, in-place updates.

    A unit sees its patch of this frame and of the one before, and learns from its prediction two frames ago.
    """

    def __init__(self, case: Case, device: str = "cpu"):
        import torch

        from hybrid.pvm.pipeline import initial_weights

        self.torch, self.case, self.device, self.place = torch, case, device, device.split(":")[0]
        self.who = f"torch {torch.__version__} bmm by hand"
        ours = Ours(case, device, 1)
        self.feed, self.layout = ours.feed, ours.pvm.layout
        self.units = len(self.layout.hidden)
        n, h, o = int(self.layout.columns[0]), int(self.layout.rows[0]), int(self.layout.rows[1])
        flat = torch.from_numpy(initial_weights(self.layout, ours.config, 0, np.float32)).view(self.units, -1)
        shapes = [(h, n), (1, h), (o, h), (1, o)]
        cuts = flat.split([h * n, h, o * h, o], 1)
        parts = [cut.reshape(self.units, *shape) for cut, shape in zip(cuts, shapes, strict=True)]
        self.parts = [part.contiguous().to(self.place) for part in parts]
        self.speeds = [torch.zeros_like(part) for part in self.parts] if case.momentum else None
        self.tick, nothing = 0, torch.zeros(self.units, 1, n, device=self.place)
        self.kept, self.before = [self._forward(nothing)], nothing[:, :, : n // 2]

    def step(self) -> None:
        """Processes one frame."""
        torch = self.torch
        with torch.no_grad():
            x = torch.cat([self._patches(), self.before], 2)
            now = self._forward(x)
            if len(self.kept) == 2:
                self._learn(x, *self.kept.pop(0))
            self.kept.append(now)
            self.before = x[:, :, : x.shape[2] // 2]
            self.tick += 1

    def _forward(self, x):
        """Returns the inputs, hidden vectors and predictions of all units."""
        first, first_bias, second, second_bias = self.parts
        hidden = self._rational(self.torch.baddbmm(first_bias, x, first.mT))
        return x, hidden, self._rational(self.torch.baddbmm(second_bias, hidden, second.mT))

    def _patches(self):
        """Returns this frame, squeezed, one row per unit."""
        image = (
            self.torch.from_numpy(self.feed[self.tick].image[0])
            .to(self.place, self.torch.float32)
            .mul_(0.8 / 255)
            .add_(0.1)
        )
        side = image.shape[0] // 5
        return image.view(side, 5, side, 15).permute(0, 2, 1, 3).reshape(self.units, 1, 75)

    def _rational(self, s):
        return s.div_(s.abs().add_(1).mul_(2)).add_(0.5)

    def _learn(self, target, x, hidden, y):
        delta = (target - y) * (1 - (2 * y - 1).abs()).square() / 2
        inner = self.torch.bmm(delta, self.parts[2]) * (1 - (2 * hidden - 1).abs()).square() / 2
        for which, error, inputs in ((2, delta, hidden), (0, inner, x)):
            matrix, bias = (self.speeds or self.parts)[which : which + 2]
            if self.speeds is None:
                matrix.addcmul_(error.mT, inputs, value=RATE)
            else:
                matrix.baddbmm_(error.mT, inputs, beta=self.case.momentum, alpha=RATE)
                bias.mul_(self.case.momentum)
            bias.add_(error, alpha=RATE)
        for part, speed in zip(self.parts, self.speeds or (), strict=False):
            part.add_(speed)

    def check(self) -> None:
        """Checks that some units' weights equal those of ours after the same number of frames."""
        ours = Ours(self.case, self.device, 1)
        for _ in itertools.islice(ours.pvm.run(ours.feed), self.tick):  # without `ahead`: no further frame is in flight
            pass
        size = ours.parameters // self.units
        for unit in (0, self.units // 2, self.units - 1):
            found = self.torch.cat([part[unit].flatten() for part in self.parts]).cpu().numpy()
            there = ours.pvm.weights[unit * size : (unit + 1) * size]
            np.testing.assert_allclose(found, ours.pvm.backend.device.to_host(there), atol=1e-6)

    def work(self, threads: int) -> Work:
        """Returns the model as a rival."""
        work = ("pvm.frame", self.who, self.case._asdict(), self.case.frames, "frames/s", self.some, self.check)
        return Work(*work, threads=threads, warm=1)

    def some(self) -> None:
        """Processes the frames of a sample."""
        for _ in range(self.case.frames):
            self.step()


def bound(ours: Ours, record: dict) -> str:
    """Returns the comparison of the figure with its bound, in one line."""
    low, _, high = statistics.quantiles(record["bandwidth_shares"])
    line = (
        f"  {ours.parameters * record['value'] / 1e9:.2f} G parameters/s; in turns with passes over its weights "
        f"{record['bytes_a_second'] / 1e9:.1f} GB/s as counted, {record['bandwidth_share']:.0%} ({low:.0%} to {high:.0%}) of "
        f"their {record['bandwidth'] / 1e9:.1f}; memory {record['memory_over_least']:.3f} x weights, momentum and tapes"
    )
    if ours.case in BARS:
        of, least = BARS[ours.case]
        line += f"; bar {least:g}: {'met' if record[of] >= least else 'missed'}"
    return line
