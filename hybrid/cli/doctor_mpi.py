"""What this machine has of MPI; and under `hybrid launch`, how fast its ranks reach each other."""

import importlib.util
import os
import statistics
from typing import Any

from ..processors import allowed
from ..ranks import library
from ..ranks.pingpong import LARGE, ROWS, SIZES, Messages
from ..ranks.world import WANTED, world
from .finding import failure, finding


def mpi() -> list[dict[str, Any]]:
    """The library and mpiexec, neither of which the engine needs; [] without mpi4py, named by itself, or on Windows."""
    if importlib.util.find_spec("mpi4py") is None or not hasattr(os, "fork"):
        return []
    from ..ranks.mpi import mpiexec

    program = mpiexec()
    return [_library(), finding("mpiexec", program is not None, program or "none found", WANTED, needed=False)]


def _library() -> dict[str, Any]:
    """Which it is, and what it can do; ours asks it from several threads."""
    try:
        found = library.ask()
    except OSError as error:
        return failure("MPI", error, f"{WANTED}, or an mpi4py of the MPI that is there")
    said = f"{found['name']}, MPI {found['standard']}, threads {found['threads']}"
    return finding("MPI", found["threads"] == "multiple", said, "install an MPI with MPI_THREAD_MULTIPLE", needed=False)


def between(repeat: int = 7) -> dict[str, Any]:
    """Medians of what messages take between the ranks of this run, by all of them; {} for a process alone. JSON-able.

    hosts      each rank's host and cores
    pingpong   for rank 0 and another one, on its host and on the first other host: bytes and seconds of a message one way
    allreduce  bytes and seconds of a sum of all ranks
    alltoall   bytes that each sends to each, and seconds

    Figures are known to rank 0 alone.
    """
    if world().size == 1:
        return {}
    messages = Messages()
    hosts = messages.hosts(allowed())
    return {
        "hosts": [{"rank": rank, "host": host, "cores": cores} for rank, (host, cores) in enumerate(hosts)],
        "pingpong": [
            {"ranks": [0, other], "bytes": size, "seconds": _median(messages.pingpong(other, size, repeat))}
            for other in _partners([host for host, _ in hosts])
            for size in SIZES
        ],
        "allreduce": {"bytes": LARGE, "seconds": _median(messages.allreduce(LARGE, repeat))},
        "alltoall": {"bytes": ROWS, "seconds": _median(messages.alltoall(ROWS, repeat))},
    }


def _partners(hosts: list[str]) -> list[int]:
    """The first other rank on rank 0's host, and the first on another host: the two kinds of ways."""
    others = range(1, len(hosts))
    near = [rank for rank in others if hosts[rank] == hosts[0]]
    far = [rank for rank in others if hosts[rank] != hosts[0]]
    return near[:1] + far[:1]


def _median(samples: list[float]) -> float:
    return statistics.median(samples) if samples else 0.0


def text(found: dict[str, Any]) -> list[str]:
    """Lines of what `between` found; without ranks the command that measures."""
    if not found:
        return ["  between ranks: hybrid launch -n 2 doctor measures latency and bandwidth"]
    hosts = found["hosts"]
    lines = [f"  rank {one['rank']:<4} {one['host']}, {one['cores']} core{'s' * (one['cores'] != 1)}" for one in hosts]
    for one in found["pingpong"]:
        a, b = one["ranks"]
        name = f"rank {a} to {b}, {_bytes(one['bytes'])}"
        lines.append(f"  {name:<28} {1e6 * one['seconds']:9.1f} us {one['bytes'] / one['seconds'] / 1e9:7.2f} GB/s")
    for name, what in (("allreduce", "allreduce"), ("alltoall", "all to all, each")):
        one = found[name]
        said = f"{what} {_bytes(one['bytes'])}"
        lines.append(f"  {said:<28} {1e6 * one['seconds']:9.1f} us")
    cores = sum({one["host"]: one["cores"] for one in hosts}.values())
    if len(hosts) > cores:
        lines.append(f"  {len(hosts)} ranks share {cores} cores: they wait for each other's turns as well")
    return lines


def _bytes(size: int) -> str:
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size // scale} {unit}"
    return f"{size} B"
