"""What our GPU kernels do, counted on the simulated driver: bytes against the bound, how full sectors are. No times.

The steps, and what they cannot avoid, are those of bench/gpu_cases.py. Bytes are those that warps ask for; a cache serves
those of `again`, which the launch had touched before. Sectors are the 32 bytes that memory moves at least: of each request
of a warp, so two requests that share one count it twice, as the way from the L2 cache does. Passes are those over the banks
of shared memory, conflicts those that lanes cause which ask a bank for different words; atomics count turns, as many as
lanes meet on one address. `in turn` is the longest chain of steps that kernels mark, each of which waits for the one
before: how often the root of a tree moves.

The products of the simulated cuBLAS are not counted, nor are copies.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.gpu_cases import Case, cases
from bench.measure import append
from bench.simulated import simulate

COUNTS = True  # and times nothing: it runs beside other work


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


def run(arguments: argparse.Namespace) -> int:
    """Print the table; with --json a line a kernel."""
    simulate(count=1)
    from tests import cudasim

    found = list(counted())
    print(table(found), *cudasim.problems(), sep="\n")
    append(arguments.json, [{"bench": "gpu_counts", **one._asdict()} for one in found])
    return 1 if cudasim.problems() else 0


def counted() -> Iterator[Count]:
    """All cases, counted; the simulated driver counts already."""
    from gpu.device import Device
    from tests.cudasim import traffic

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
    names = [
        "step",
        "kernel",
        "a",
        "step at least",
        "read",
        "of that again",
        "written",
        "in sectors",
        "full: read",
        "written",
    ]
    names += ["passes", "conflicts", "atomics", "barriers", "of warps", "in turn"]
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
    from tests.cudasim.traffic import SECTOR, total

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
