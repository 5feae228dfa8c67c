"""What the host does for a tick on a GPU, on the simulated driver: launches, calls of the driver, and its own time beside them.

Launches and calls are the median of several times some ticks: exact but where memory of other ticks is freed meanwhile. The
host's time is the processor time of all threads of this process less what they spend within calls of the driver, which does
the device's work there: Python, above all. It is the least of those times. No bar is set to it: a busy machine, and caches
that the simulated device has filled, as here, make it several times as long.
"""

import argparse
import dataclasses
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bench.simulated import tabulate

COUNTS = True  # its clock is of this process's own work: it runs beside other work
TIMES, FEW, TICKS = 10, 3, 12  # times, and with --quick
WARM = 18  # the first 6 ticks of a slot are launched one by one, the next 6 are recorded
CLASSES, WIDTH, BATCH = 256, 32, 64


class Calls(NamedTuple):
    """What one tick takes of the host.

    launches  calls that launch a kernel, a graph or a product
    calls     of the driver, these among them
    host      microseconds of processor time outside of the driver
    """

    tick: str
    launches: float
    calls: float
    host: float


def run(arguments: argparse.Namespace) -> int:
    """Print the table; with --json a line a tick."""
    return tabulate(arguments, "gpu_calls", counted(arguments.threads, FEW if arguments.quick else TIMES), table)


def counted(threads: int, times: int) -> Iterator[Calls]:
    """All ticks, counted; the simulated driver has started."""
    for name, readouts in (("small", False), ("small", True), ("flat210m", False)):
        yield _counted(f"PVM {name}{', readouts learn' * readouts}", _frames(name, readouts, threads), times)
    yield _counted(f"language model, tree of {CLASSES} classes on the GPU", _language(threads), times)
    yield from _steps(times)


def table(found: list[Calls]) -> str:
    """As Markdown."""
    lines = ["| tick | launches | calls of the driver | host, us |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {c.tick} | {c.launches:g} | {c.calls:g} | {c.host:.0f} |" for c in found])


def _counted(name: str, ticks: Iterator[Any], times: int) -> Calls:
    """Of ticks that go on for ever, after some in which all is done that is done once."""
    from tests import cudasim

    _take(ticks, WARM)
    gc.collect()  # what other ticks have left is freed within the next ones
    seconds, made = [], []
    for _ in range(times):
        before, start = cudasim.counts(), time.process_time() - cudasim.spent()
        _take(ticks, TICKS)
        seconds.append(time.process_time() - cudasim.spent() - start)
        made.append({kind: count - before[kind] for kind, count in cudasim.counts().items()})
    launches = statistics.median(calls["launch"] for calls in made)
    calls = statistics.median(sum(calls.values()) for calls in made)
    return Calls(name, launches / TICKS, calls / TICKS, 1e6 * min(seconds) / TICKS)


def _take(ticks: Iterator[Any], count: int) -> None:
    for _ in itertools.islice(ticks, count):
        pass


def _frames(name: str, readouts: bool, threads: int) -> Iterator[Any]:
    """Frames of a configuration whose layers are cut to a unit or four, of few hidden numbers: the calls are the same."""
    from bench.pvm import AHEAD, RATE, Case, Feed
    from hybrid.pvm.model import PVM
    from hybrid.pvm.presets import load

    config = load(name)[0]
    grids = ((2, 2), *((1, 1) for _ in config.grids[1:]))
    readout = dataclasses.replace(config.readout, hidden=(5,)) if config.readout and readouts else None
    schedule = ((0, None, RATE, 0.1),)
    cut = dataclasses.replace(config, grids=grids, hidden=(5,), schedule=schedule, readout=readout)
    model = PVM(cut, device="cuda:0", threads=threads)
    return model.run(Feed(model.wiring.frame, Case(name, readouts=readouts)), every=10**6, ahead=AHEAD)


def _language(threads: int) -> Iterator[Any]:
    """Ticks of three words in and one out; the rows are on the host."""
    from bench.language import ZipfFeed
    from hybrid.backend import choose
    from hybrid.engine import Engine
    from hybrid.engine.embedding import Embedding
    from hybrid.engine.trunk.mlp import Trunk
    from hybrid.readout import TreeReadout

    feed, gpu = ZipfFeed(CLASSES, BATCH), choose("cuda:0")
    embedding = Embedding(CLASSES, WIDTH, per_example=feed.most_ids // BATCH, rate=0.05)
    trunk = Trunk(embedding.outputs, WIDTH, WIDTH, rate=0.1)
    readout = TreeReadout(feed.counts, WIDTH, batch=BATCH, rate=0.05, backend=gpu)
    return Engine(embedding, trunk, readout, device="cuda:0", threads=threads).run(feed)


def _steps(times: int) -> Iterator[Calls]:
    """Steps of `bench.gpu_cases`, launched one after the other by one piece of work."""
    from bench.gpu_cases import cases
    from gpu.device import Device

    device = Device(0)
    try:
        queue = device.inline("calls", 1)
        for case in cases(device, lambda work, *given: queue.run(work, *given).wait()):
            yield queue.run(lambda step: _counted(case.name, _repeated(step), times), case.step).wait()  # noqa: B023  # done here
    finally:
        device.close()


def _repeated(step: Callable[[], Any]) -> Iterator[Any]:
    return (step() for _ in itertools.count())
