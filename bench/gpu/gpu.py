"""The GPU: its ceilings, and the fused step, softmax, rows, tree and PVM against PyTorch.

`python -m bench gpu --out DIR` measures copy bandwidth and GEMM rate as ceilings, then each work with its rivals. One .jsonl in
DIR has all samples and the environment; the summary comes last. `--only WORK` selects works, with the ceilings already in the
.jsonl. Memory: about 10 GB, on the device and on the host. The exit code is 1 if a work could not be measured, 2 without a
device. A missed bar is reported, but is no failure.

It needs NumPy, PyCUDA, nvcc or NVRTC (see gpu/runtime/compiler.py) and cuBLAS (see gpu/runtime/blas.py); Numba and SciPy for
CPU works; PyTorch with CUDA for comparison. `make gpu-kit` collects the packages for a machine without a network;
bench/first_ten.sh installs them there, tests and measures, the most valuable first. `--tell OUT` prints a page of its results.

`python -m tests.cudasim python -m bench gpu --quick` runs on the simulated driver: a functional test, without meaningful
speeds.
"""

import argparse
import datetime
import importlib
import re
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.gpu import tell
from bench.gpu.ceilings import bandwidth, measured
from bench.gpu.machine import Machine
from bench.harness.measure import FIRST, append, show
from bench.harness.report import scaled

WORKS = ("ceilings", "units", "tree", "pvm", "softmax", "rows", "ragged", "losses", "overlap")
ONLY = WORKS


def run(arguments: argparse.Namespace) -> int:
    """Runs ceilings, works, summary; returns the exit code."""
    if arguments.tell:
        return tell.tell(arguments.tell)
    from gpu.runtime.available import unavailable

    if reason := unavailable():
        print(
            f"no GPU to measure: {reason}; `python -m tests.cudasim python -m bench gpu --quick` runs on a simulated one"
        )
        return 2
    machine = Machine()
    try:
        return _run(machine, arguments)
    finally:
        machine.close()


def _run(machine: Machine, arguments: argparse.Namespace) -> int:
    from gpu.device import DeviceError

    path = arguments.json or str(_file(arguments, machine.name))
    print(f"{machine.facts}\nsamples go to {path}", flush=True)
    wanted = arguments.only or WORKS
    kept, failures, started = list[dict](), [], time.perf_counter()
    for name, make in _contests(machine, arguments, wanted, path):
        began = time.perf_counter()
        try:
            records = make().records(arguments.repeat)
        except Exception as error:
            traceback.print_exc()
            failures.append(f"{name}: {error}")
            if isinstance(error, DeviceError):  # the device is lost: all further works would fail too
                break
            continue
        _report(machine, records, judged=not (arguments.quick or machine.simulated))
        kept += records
        append(path, records)
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    if machine.silent:  # known once a work has imported PyTorch
        print(f"\nours alone: {machine.silent}")
    print(f"\nSummary, after {time.perf_counter() - started:.0f} s\n", *tell.table(kept), sep="\n")
    print(*(f"  FAILED {failure}" for failure in failures), sep="\n", flush=True)
    return 1 if failures else 0


def _file(arguments: argparse.Namespace, device: str) -> Path:
    """Returns a file name of date and device; creates the file, so that an unwritable folder fails before the measurement."""
    folder = Path(arguments.out or "runs")
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    path = folder / f"gpu-{name}-{datetime.date.today()}{'-quick' * arguments.quick}.jsonl"
    path.open("a").close()
    return path


def contests(threads: int) -> dict[str, Callable[[Machine, bool], Iterator[Callable[[], Any]]]]:
    """Returns, for each work, a function of a machine and `quick` that yields factories of its contests.

    A work's module is imported only for its contests: most need no Numba, and run even if Numba does not start.
    """
    return {
        "ceilings": partial(_made, "gpu.ceilings.ceilings"),
        "units": partial(_made, "gpu.units.of_one_size"),
        "tree": partial(_made, "gpu.tree.tree", threads=threads),
        "pvm": partial(_made, "gpu.pvm.frames"),
        "softmax": partial(_made, "gpu.sparse.softmax"),
        "rows": partial(_made, "gpu.sparse.rows"),
        "ragged": partial(_made, "gpu.units.ragged"),
        "losses": partial(_made, "step.plugs.on_gpu", threads=threads),
        "overlap": partial(_made, "step.overlap.on_gpu", threads=threads),
    }


def _made(maker: str, machine: Machine, quick: bool, **more: int) -> Iterator[Callable[[], Any]]:
    """Yields the factories of a function in a module of bench."""
    module, _, name = maker.rpartition(".")
    yield from getattr(importlib.import_module(f"bench.{module}"), name)(machine, quick, **more)


def _raise(error: Exception) -> Any:
    raise error


def _contests(
    machine: Machine, arguments: argparse.Namespace, wanted: Sequence[str], path: str
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields the contests of the requested works, and the ceilings if unknown."""
    if "ceilings" not in (arguments.only or ()):
        machine.bandwidth = measured(path, machine, arguments.quick)
    groups = contests(arguments.threads)
    chosen = [name for name in groups if name in wanted and name != "ceilings"]
    if machine.bandwidth is None and ("ceilings" in wanted or (chosen and not FIRST)):
        chosen = ["ceilings", *chosen]
    for name in chosen:
        try:
            for make in groups[name](machine, arguments.quick):
                yield name, make
        except Exception as error:  # affects this work alone, such as a failed import
            yield name, partial(_raise, error)


def _report(machine: Machine, records: list[dict], judged: bool) -> None:
    """Prints a contest, and adds our verdict on its bars to our record."""
    ours = records[0]
    if ours["work"] == "gpu.copy":
        machine.bandwidth = bandwidth(records)
    show(records)
    for line in _details(ours, machine.bandwidth):
        print(f"  {line}")
    ours["bars"] = [judge(bar, ours, records) for bar in bars_of(ours)] if judged else []


def _details(ours: dict, copied: float | None) -> Iterator[str]:
    """Yields details beyond the table's columns."""
    if "bandwidth_share" in ours:
        counted = f" at {ours['bytes_per_parameter']} bytes each" if "bytes_per_parameter" in ours else ""
        rate = ours["bandwidth_share"] * (copied or 0) / 1e9
        share = f"{ours['bandwidth_share']:.1%} of the {(copied or 0) / 1e9:,.0f} that a copy reaches"
        yield f"{scaled(ours['value'], ours['unit'])}{counted} = {rate:,.0f} GB/s, {share}"
    if "overlap" in ours:
        stages = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in ours["stages"].items())
        yield f"overlap {ours['overlap']:.2f}, efficiency {ours['efficiency']:.2f}; ms in all: {stages}"
        yield f"copies are {ours['copies']:.1%} of all stages; dense over sparse {ours['balance']:.2f}; {ours['pace']}"
    if "variant" in ours:
        yield f"kernels: {ours['variant']}"
    if "wall_seconds" in ours:
        yield (
            f"a step: {1e6 * ours['seconds']:,.1f} us on the device, {1e6 * ours['wall_seconds']:,.1f} us by the host's "
            f"clock in batches of {ours['steps']}"
        )


class Bar(NamedTuple):
    """A promised figure of ours at a work.

    of     "value", "bandwidth_share", "overlap", or "ratio": ours over the best rival whose name ends with `rival`
    """

    of: str
    least: float
    rival: str = ""


COPY = Bar("bandwidth_share", 0.88)
BARS: dict[tuple[str, tuple], tuple[Bar, ...]] = {
    ("units.step", (("batch", 1), ("momentum", 0.0))): (COPY, Bar("ratio", 8, " bmm + SGD")),
    ("units.step", (("batch", 1), ("momentum", 0.9))): (COPY,),
    ("units.ragged", (("batch", 1),)): (Bar("bandwidth_share", 0.6),),
    ("softmax.step", (("precision", "fp32"),)): (Bar("ratio", 1.3),),
    ("softmax.step", (("precision", "tf32"),)): (Bar("ratio", 1.3),),
    ("softmax.step", (("precision", "bf16"),)): (Bar("ratio", 0.77),),
    ("tree.step", (("batch", 1024), ("together", 1024))): (Bar("value", 50e6),),
    ("rows.gather", (("ids", 65_536),)): (Bar("bandwidth_share", 0.9),),
    ("pvm.frame", (("config", "flat210m"), ("momentum", 0.0))): (COPY,),
    ("pvm.frame", (("config", "small"), ("streams", 1), ("readouts", False))): (Bar("value", 5000),),
    ("overlap.tick", ()): (Bar("overlap", 0.9),),
}


def bars_of(ours: dict) -> tuple[Bar, ...]:
    """Returns the bars for the work and sizes of a record."""
    for (work, params), bars in BARS.items():
        if work == ours["work"] and set(params) <= set(ours["params"].items()):
            return bars
    return ()


def judge(bar: Bar, ours: dict, records: list[dict]) -> dict[str, Any]:
    """Judges a bar; `found` and `met` are None without a rival or ceiling to compare with."""
    if bar.of == "ratio":
        rivals = [one["value"] for one in records if one["who"] != "ours" and one["who"].endswith(bar.rival)]
        found = ours["value"] / max(rivals) if rivals else None
    else:
        found = ours.get(bar.of)
    return bar._asdict() | {"found": found, "met": None if found is None else found >= bar.least}
