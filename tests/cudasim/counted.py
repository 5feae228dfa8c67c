"""What our GPU kernels do, counted on the simulated driver: bytes against the bound, how full sectors are. No times.

What a step cannot avoid is each number read once and written once, of every array that comes in or goes out. Bytes are
those that warps ask for; a cache serves those of `again`, which the launch had touched before. Sectors are the 32 bytes
that memory moves at least: of each request of a warp, so two requests that share one count it twice, as the way from the L2
cache does. Passes are those over the banks of shared memory, conflicts those that lanes cause which ask a bank for
different words; atomics count turns, as many as lanes meet on one address. `in turn` is the longest chain of steps that
kernels mark, each of which waits for the one before: how often the root of a tree moves.

The products of the simulated cuBLAS are not counted, nor are copies.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.harness.measure import append
from tests import cudasim
from tests.cudasim import cublas, traffic
from tests.cudasim.traffic import SECTOR, total

UNITS = {
    "150-49-150": ([150] * 4, [49] * 4, [150] * 4),
    "ragged": ([150, 61, 333], [49, 97, 30], [150, 37, 101]),
    "too large to hold": ([700], [80], [300]),
    "too large, rows of whole sectors": ([704], [80], [300]),
}
RATE, MOMENTUM = 0.01, 0.9
ROWS, WIDTH, IDS = 1000, 128, 256  # of tables
TREE = 256  # classes
BATCH, TOGETHER = 1024, 64  # examples of the tree, and those that learn at once in its mode `batch`
CLASSES, EXAMPLES, BEST = 1000, 16, 10  # of the full softmax, the last per example


class Case(NamedTuple):
    """A step, and what it is counted by.

    amount  so many of `unit` are in a step
    least   bytes that a step cannot avoid, read and written
    step    launches it
    """

    name: str
    unit: str
    amount: int
    least: int
    step: Callable[[], Any]


def cases(device: Any, do: Callable[..., Any]) -> Iterator[Case]:
    """The steps; do(work, *arguments) is the result of some work on a queue of the device."""
    from gpu import pvm as gpu_pvm

    for shape in UNITS:
        yield _units(device, do, shape, 0.0)
    yield _units(device, do, "150-49-150", MOMENTUM)
    yield from (_pvm(momentum) for momentum in (0.0, MOMENTUM))
    yield _pvm(MOMENTUM, streams=4)
    few, gpu_pvm.FEW = gpu_pvm.FEW, 0  # as of its 14,161 units, of which nine are here
    yield from (_pvm(momentum, preset="flat210m", grids=((3, 3),)) for momentum in (0.0, MOMENTUM))
    gpu_pvm.FEW = few
    yield from _rows(device)
    yield _tree(device, do)
    yield _tree(device, do, TOGETHER)
    yield from _softmax(device, do)


def _units(device: Any, do: Callable[..., Any], shape: str, momentum: float) -> Case:
    """One online step: weights, and velocities, are read and written once, and all signals besides."""
    from gpu import units
    from hybrid.units import unit_layout

    layout = unit_layout(*UNITS[shape])
    rng = np.random.default_rng(5)
    parameters, inputs, hiddens, outputs = (int(at[-1]) for at in (layout.w_at, layout.x_at, layout.h_at, layout.y_at))
    weights = device.from_host(rng.normal(0, 0.1, parameters).astype(np.float32))
    velocity = device.from_host(np.zeros(parameters, np.float32)) if momentum else None
    x, target = (device.from_host(rng.random((1, size), np.float32)) for size in (inputs, outputs))
    loss = device.empty(len(layout.inputs), np.float32)
    y, y_grad = (device.empty((1, outputs), np.float32) for _ in range(2))
    hidden, hidden_grad = (device.empty((1, hiddens), np.float32) for _ in range(2))
    plan = do(units.plan, layout)
    written = loss, y, hidden, weights, velocity, y_grad, hidden_grad
    read = plan, x, target, RATE, momentum, "logistic"
    signals = sum(array.nbytes for array in (loss, y, hidden, y_grad, hidden_grad, x, target))
    least = (16 if momentum else 8) * parameters + signals
    name = f"units.step {shape}{', momentum' * bool(momentum)}"
    return Case(name, "parameter", parameters, least, lambda: units.step(*written, *read))


def _pvm(momentum: float, streams: int = 1, preset: str = "small", grids: Any = ((2, 2), (1, 1))) -> Case:
    """A tick of a preset, its layers cut to a few units: each has other inputs than a multiple of a warp."""
    from dataclasses import replace

    from bench.step.pvm import Case as Video
    from bench.step.pvm import Feed, frame_input
    from hybrid.pvm.model import PVM
    from hybrid.pvm.presets import load

    whole, schedule = load(preset)[0], ((0, None, RATE, momentum or None),)
    cut = replace(whole, grids=grids, hidden=whole.hidden[:1], schedule=schedule, readout=None)
    model = PVM(cut, device="cuda:0", threads=1, streams=streams)
    feed = Feed(model.wiring.frame, Video(preset, streams))
    for tick in range(3):  # the first learn nothing
        model.step(feed[tick].image if streams > 1 else feed[tick].image[0])
    slot, (parameters, _) = model.pipeline.slot(), model.size
    slot.fill(model.tick, 0, frame_input(model, feed), 0, streams)
    tape, signals, world = (model.pipeline.state[name].nbytes for name in ("tape_0", "signals_0", "world_0"))
    # A tape is written, one is read, and so is what flows back along it; signals and world are read and written.
    moved = 3 * tape + 2 * (signals + world) + slot.miss.nbytes
    said = ", momentum" * bool(momentum) + f", {streams} streams" * (streams > 1)
    name, least = f"pvm.tick {preset}{said}", (16 if momentum else 8) * parameters + moved
    return Case(name, "parameter", parameters, least, lambda: model.pipeline.tick(slot))


def _rows(device: Any) -> Iterator[Case]:
    """Rows by ids as words come: a gather reads a row and writes it; a scatter reads and writes each row that it meets once.

    `sorted by digits`: the same list, by the kernels that sort long ones. `a square a row`: row-wise Adagrad.
    """
    from gpu import rows, sort
    from hybrid.contract import Learned

    rng = np.random.default_rng(7)
    drawn = np.minimum(rng.zipf(1.3, IDS) - 1, ROWS - 1).astype(np.int32)
    there, ids = device.from_host(rng.random((ROWS, WIDTH), np.float32)), device.from_host(drawn)
    out, grad = device.empty((IDS, WIDTH), np.float32), device.from_host(rng.random((IDS, WIDTH), np.float32))
    met, row = np.unique(drawn).size, 4 * WIDTH
    yield Case("rows.gather", "row", IDS, IDS * (row + 4) + met * row, lambda: rows.gather(out, there, ids))
    least = IDS * (row + 4) + 2 * met * row
    yield Case("rows.scatter", "row", IDS, least, lambda: rows.scatter(Learned(there), ids, grad, RATE))
    squared = Learned(there, squares=device.from_host(np.zeros(ROWS, np.float32)))
    squares = 8 * met  # bytes
    yield Case(
        "rows.scatter, a square a row", "row", IDS, least + squares, lambda: rows.scatter(squared, ids, grad, RATE)
    )
    short, sort.SHORT = sort.SHORT, 0
    name = "rows.scatter, sorted by digits"
    yield Case(name, "row", IDS, least, lambda: rows.scatter(Learned(there), ids, grad, RATE))
    sort.SHORT = short


def _tree(device: Any, do: Callable[..., Any], *together: int) -> Case:
    """Nodes that are met are read and written once, hidden vectors read, gradients and losses written; paths are known.

    together: so many examples of a node learn at once; not given, one after another.
    """
    from cpu.tree.tree import balanced
    from gpu import tree_batch, tree_softmax
    from hybrid.contract import Learned

    kernels, tree, rng = tree_batch if together else tree_softmax, balanced(TREE), np.random.default_rng(3)
    target = device.from_host(rng.integers(0, TREE, BATCH).astype(np.int32))
    nodes = device.from_host(rng.normal(0, 0.1, (TREE - 1, WIDTH)).astype(np.float32))
    hidden = device.from_host(rng.random((BATCH, WIDTH), np.float32))
    grad, loss = device.empty((BATCH, WIDTH), np.float32), device.empty(BATCH, np.float32)
    plan, work = do(kernels.plan, tree), do(kernels.workspace, BATCH, WIDTH, tree.depth, *together, np.float32)
    given = grad, loss, Learned(nodes), work, plan, hidden, target, None, RATE, *together
    least = sum(array.nbytes for array in (grad, loss, nodes, nodes, hidden, target))
    name = f"tree step, {TREE} classes" + f", {TOGETHER} together" * bool(together)
    return Case(name, "example", BATCH, least, lambda: kernels.step(*given))


def _softmax(device: Any, do: Callable[..., Any]) -> Iterator[Case]:
    """Logits are read twice and written once, beside what the products move.

    The best classes: logits are read by their sums, and by the choice.
    """
    from gpu import softmax
    from hybrid.contract import Learned

    rng = np.random.default_rng(4)
    weights = device.from_host(rng.normal(0, 0.1, (CLASSES, WIDTH)).astype(np.float32))
    hidden = device.from_host(rng.random((EXAMPLES, WIDTH), np.float32))
    target = device.from_host(rng.integers(0, CLASSES, EXAMPLES).astype(np.int32))
    grad, loss = device.empty((EXAMPLES, WIDTH), np.float32), device.empty(EXAMPLES, np.float32)
    work = do(softmax.workspace, EXAMPLES, WIDTH, np.float32)
    given = grad, loss, Learned(weights), work, hidden, target, None, RATE
    amount = CLASSES * EXAMPLES
    yield Case("softmax step, kernels", "logit", amount, 12 * amount, lambda: softmax.step(*given))
    ids, log_probs = device.empty((EXAMPLES, BEST), np.int32), device.empty((EXAMPLES, BEST), np.float32)
    best = lambda: softmax.best(ids, log_probs, Learned(weights), work, hidden)  # noqa: E731
    yield Case(f"softmax.best, {BEST} classes", "logit", amount, 8 * amount + ids.nbytes + log_probs.nbytes, best)


class Count(NamedTuple):
    """What the launches of one kernel did in one step.

    least .. sectors         bytes a unit: of the whole step at least; read; of these again; written; of all sectors
    read_full, written_full  which part of the sectors that are read, and written, is asked for
    passes                   over the banks of shared memory, a unit
    conflicts                which part of these would not be but for conflicts
    atomics                  turns at addresses
    barriers, warp_barriers  how often blocks met; how often warps did, at __syncwarp
    chain                    marked steps in turn
    """

    case: str
    kernel: str
    unit: str
    launches: int
    least: float
    read: float
    again: float
    written: float
    sectors: float
    read_full: float
    written_full: float
    passes: float
    conflicts: float
    atomics: int
    barriers: int
    warp_barriers: int
    chain: int


def main() -> int:
    """Print the table; with --json a line a kernel."""
    parser = argparse.ArgumentParser("python -m tests.cudasim.counted", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="append a line a kernel")
    arguments = parser.parse_args()
    cudasim.start(count=1)
    cublas.use()
    found = list(counted())
    print(table(found), *cudasim.problems(), sep="\n")
    append(arguments.json, [{"bench": "gpu_counts", **one._asdict()} for one in found])
    return 1 if cudasim.problems() else 0


def counted() -> Iterator[Count]:
    """All cases, counted; the simulated driver counts already."""
    from gpu.device import Device

    device = Device(0)
    try:
        queue = device.inline("counts", 1)
        for case in cases(device, lambda work, *given: queue.run(work, *given).wait()):
            traffic.forget()
            queue.run(case.step).wait()
            launches = traffic.launches()
            for kernel in dict.fromkeys(launch.kernel for launch in launches):
                yield _count(case, kernel, [launch for launch in launches if launch.kernel == kernel])
    finally:
        device.close()


def table(counts: list[Count]) -> str:
    """As Markdown."""
    names = ["step", "kernel", "a", "step at least", "read", "of that again", "written", "in sectors", "full: read"]
    names += ["written", "passes", "conflicts", "atomics", "barriers", "of warps", "in turn"]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for c in counts:
        moved = (f"{number:,.2f}" for number in (c.least, c.read, c.again, c.written, c.sectors))
        full = (_percent(part) for part in (c.read_full, c.written_full))
        met = (f"{number:,}" for number in (c.atomics, c.barriers, c.warp_barriers, c.chain))
        cells = c.case, c.kernel, c.unit, *moved, *full, f"{c.passes:,.2f}", _percent(c.conflicts), *met
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _count(case: Case, kernel: str, launches: list[Any]) -> Count:
    read, written = total(one.read for one in launches), total(one.written for one in launches)
    shared = total(shared for one in launches for shared in (one.shared_read, one.shared_written))
    return Count(
        case.name,
        kernel,
        case.unit,
        len(launches),
        least=case.least / case.amount,
        read=read.bytes / case.amount,
        again=read.again / case.amount,
        written=written.bytes / case.amount,
        sectors=SECTOR * (read.sectors + written.sectors) / case.amount,
        read_full=read.full,
        written_full=written.full,
        passes=shared.passes / case.amount,
        conflicts=shared.conflicts / max(shared.passes, 1),
        atomics=sum(one.atomics.turns for one in launches),
        barriers=sum(one.barriers for one in launches),
        warp_barriers=sum(one.warp_barriers for one in launches),
        chain=sum(one.chain for one in launches),
    )


if __name__ == "__main__":
    sys.exit(main())
