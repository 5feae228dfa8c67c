"""The GPU: its tests, its ceilings, and the fused step, softmax, rows, tree and PVM beside PyTorch.

`python -m bench gpu --out DIR` is the whole of it, in under 8 minutes: the tests that need a device, copy bandwidth and
GEMM rate as ceilings, then the works, each beside its rivals. One .jsonl in DIR has all samples and the environment; the
summary comes last. Memory: about 10 GB, on the device and on the host. The exit code is 1 where a test failed or a work
could not be measured, 2 where there is no device; a bar that is missed is said, and is no failure.

A machine without network: on one with network and the same Python, collect wheels of what the other lacks, for example
PyCUDA and Annoy (which have no binary wheels: build them with `pip wheel -w wheels pycuda annoy`, beside a CUDA toolkit),

    pip download -d wheels --no-deps pytools platformdirs siphash24 mako

carry the checkout and `wheels`, and there, in the checkout:

    python3 -m pip install --no-index --no-deps --target site wheels/*.whl
    PYTHONPATH=$PWD/site python3 -m bench gpu --out results

It wants numpy, scipy, numba, an nvcc (see gpu/kernels.py) and cuBLAS (see gpu/blas.py); PyTorch with CUDA to be compared
with, pytest and hypothesis for the tests. What is missing of these is said and left out. CUDASIM=1 takes the simulated
driver of the tests instead of a device: together with --quick that shows that all of this runs, and nothing about speed.
"""

import argparse
import datetime
import os
import re
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.gpu_machine import SINGLY, Machine
from bench.measure import append, show

WORKS = ("ceilings", "units", "ragged", "softmax", "rows", "tree", "pvm", "overlap")
RESULTS = Path(__file__).parent / "results"


class Bar(NamedTuple):
    """What was promised of ours at a work.

    of     "value", "bandwidth_share", "overlap", or "ratio": ours over the rival whose name ends with `rival`
    """

    of: str
    least: float
    rival: str = ""


BARS: dict[tuple[str, tuple], tuple[Bar, ...]] = {
    ("units.step", (("batch", 1), ("momentum", 0.0))): (Bar("value", 400e9), Bar("ratio", 8, " bmm + SGD")),
    ("units.step", (("batch", 1), ("momentum", 0.9))): (Bar("value", 200e9),),
    ("units.ragged", (("batch", 1),)): (Bar("bandwidth_share", 0.6),),
    ("softmax.step", (("tf32", False),)): (Bar("ratio", 1, "cross_entropy + SGD"),),
    ("softmax.step", (("tf32", True),)): (Bar("ratio", 1, "cross_entropy + SGD"),),
    ("pvm.frame", (("config", "flat210m"), ("momentum", 0.0))): (Bar("value", 1900),),
    ("pvm.frame", (("config", "small"), ("streams", 1), ("readouts", False))): (Bar("value", 3000),),
    ("overlap.tick", (("delay", 1),)): (Bar("overlap", 0.9),),
}


def run(arguments: argparse.Namespace) -> int:
    """Tests, ceilings, works, summary; returns the exit code."""
    unknown = sorted(set(arguments.only or ()) - set(WORKS))
    if unknown:
        print(f"--only: found {unknown[0]!r}, expected one of {', '.join(WORKS)}")
        return 2
    simulated = bool(os.environ.get("CUDASIM"))
    if simulated:
        _simulate()
    from gpu.available import unavailable

    if reason := unavailable():
        print(f"no GPU to measure: {reason}; with CUDASIM=1 and --quick the command runs on a simulated one")
        return 2
    machine = Machine(simulated)
    try:
        return _run(machine, arguments)
    finally:
        machine.close()


def _run(machine: Machine, arguments: argparse.Namespace) -> int:
    path = arguments.json or str(_file(arguments, machine.name))
    print(f"{machine.facts}\n{_beside(machine)}\nsamples go to {path}", flush=True)
    lines, failures, started = [], [], time.perf_counter()
    if not arguments.skip_tests:
        line = _tests(machine, path)
        lines.append(f"tests: {line}")
        failures += ["tests"] if line != "passed" else []
    for name, make in _contests(machine, arguments):
        began = time.perf_counter()
        try:
            records = make().records(arguments.repeat)
        except Exception as error:
            traceback.print_exc()
            failures.append(f"{name}: {error}")
            if _lost(error):
                break
            continue
        lines.append(_report(machine, records, judged=not (arguments.quick or machine.simulated)))
        append(path, records)
        print(f"  ({time.perf_counter() - began:.0f} s)", flush=True)
    print(
        f"\nSummary, after {time.perf_counter() - started:.0f} s",
        *lines,
        *(f"FAILED {failure}" for failure in failures),
        sep="\n  ",
        flush=True,
    )
    return 1 if failures else 0


def _simulate() -> None:
    """Let the simulated driver and the simulated cuBLAS stand in, before PyCUDA is imported."""
    from tests import cudasim
    from tests.cudasim import cublas

    cudasim.start()
    cublas.use()


def _beside(machine: Machine) -> str:
    return f"beside PyTorch {machine.torch.__version__}" if machine.torch else f"ours alone: {machine.silent}"


def _file(arguments: argparse.Namespace, device: str) -> Path:
    """Of a day and a device; made now, so that a folder that cannot be written is found before the measurement."""
    folder = Path(arguments.out or RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")
    path = folder / f"gpu-{name}-{datetime.date.today()}{'-quick' * arguments.quick}.jsonl"
    path.open("a").close()
    return path


def _tests(machine: Machine, path: str) -> str:
    """Run and record the tests; "passed", or what to say of them."""
    from bench import gpu_suite

    record, text = gpu_suite.run_tests(machine.name)
    print(f"tests: {text}", flush=True)
    record["env"] |= machine.facts
    append(path, [record])
    return "passed" if record["checked"] else text.splitlines()[-1]


def _contests(machine: Machine, arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The contests of the works that are wanted, made when their turn comes; the ceilings always, for the shares."""
    from bench import gpu_ceilings, gpu_overlap, gpu_pvm, gpu_sparse, gpu_units

    groups: dict[str, Callable[..., Iterator[Callable[[], Any]]]] = {
        "ceilings": gpu_ceilings.ceilings,
        "units": gpu_units.equal,
        "ragged": gpu_units.ragged,
        "softmax": gpu_sparse.softmax,
        "rows": gpu_sparse.rows,
        "tree": partial(gpu_sparse.tree, threads=arguments.threads),
        "pvm": gpu_pvm.frames,
        "overlap": partial(gpu_overlap.overlap, threads=arguments.threads),
    }
    for name in WORKS:
        if name == "ceilings" or name in (arguments.only or WORKS):
            for make in groups[name](machine, arguments.quick):
                yield name, make


def _report(machine: Machine, records: list[dict], judged: bool) -> str:
    """Print a contest, note in our record how it stands to its bars, and return its line of the summary."""
    ours = records[0]
    if ours["work"] == "gpu.copy":
        machine.bandwidth = max(record["value"] for record in records if record["who"] != SINGLY)
    show(records)
    for line in _details(ours, records, machine.bandwidth):
        print(f"  {line}")
    ours["bars"] = [judge(bar, ours, records) for bar in bars_of(ours)] if judged else []
    peers = [record for record in records[1:] if record["who"] != SINGLY]
    ratios = [f"{ours['value'] / peer['value']:.3g} x {_name(peer)}" for peer in peers]
    line = f"{ours['work']} {_brief(ours['params'])}: {_amount(ours)}"
    return "; ".join([line, *ratios, *map(_verdict, ours["bars"])])


def _details(ours: dict, records: list[dict], bandwidth: float | None) -> Iterator[str]:
    """What the table has no column for."""
    if "bandwidth_share" in ours:
        counted = f" at {ours['bytes_per_parameter']} bytes each" if "bytes_per_parameter" in ours else ""
        rate = ours["bandwidth_share"] * (bandwidth or 0) / 1e9
        yield f"{_amount(ours)}{counted} = {rate:,.0f} GB/s of the {(bandwidth or 0) / 1e9:,.0f} that a copy reaches"
    if "overlap" in ours:
        stages = ", ".join(f"{name} {1e3 * seconds:.1f}" for name, seconds in ours["stages"].items())
        yield f"overlap {ours['overlap']:.2f}, efficiency {ours['efficiency']:.2f}; ms in all: {stages}"
        yield f"copies are {ours['copies']:.1%} of all stages; dense over sparse {ours['balance']:.2f}; {ours['pace']}"
    if "variant" in ours:
        yield f"kernels: {ours['variant']}"
    if "wall_seconds" in ours:
        singly = next(record["seconds"] for record in records if record["who"] == SINGLY)
        yield (
            f"a step: {1e6 * ours['seconds']:,.1f} us on the device, {1e6 * ours['wall_seconds']:,.1f} us by the host's "
            f"clock in batches of {ours['steps']}, {1e6 * singly:,.1f} us in a queue.run each"
        )
    for record in records:
        if "memory" in record:
            parts = ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in record["memory"].items())
            yield f"memory of {record['who']}: {parts}"
        if record.get("padding", 1) > 1:
            yield f"{record['who']} computes {record['padding']:.2f} x as many parameters, because it pads"


def bars_of(ours: dict) -> tuple[Bar, ...]:
    """The bars of a record: those whose work and sizes are its own."""
    for (work, params), bars in BARS.items():
        if work == ours["work"] and params and set(params) <= set(ours["params"].items()):
            return bars
    return ()


def judge(bar: Bar, ours: dict, records: list[dict]) -> dict[str, Any]:
    """Whether the bar is met; `found` and `met` are None where there was no rival to compare with."""
    if bar.of == "ratio":
        rivals = [record for record in records if record["who"].endswith(bar.rival)]
        found = ours["value"] / rivals[0]["value"] if rivals else None
    else:
        found = ours[bar.of]
    return bar._asdict() | {"found": found, "met": None if found is None else found >= bar.least}


def _verdict(bar: dict[str, Any]) -> str:
    if bar["met"] is None:
        return f"bar {bar['least']:g} x{bar['rival']}: no rival"
    met = "met" if bar["met"] else "MISSED"
    if bar["of"] == "ratio":
        return f"bar {bar['least']:g} x {bar['rival'].strip()}: {met} at {bar['found']:.2f} x"
    if bar["of"] == "overlap":
        return f"bar overlap {bar['least']:g}: {met} at {bar['found']:.2f}"
    if bar["of"] == "bandwidth_share":
        return f"bar {bar['least']:.0%} of the bandwidth: {met} at {bar['found']:.1%}"
    scale, prefix = (1e9, " G") if bar["least"] >= 1e9 else (1, "")
    return f"bar {bar['least'] / scale:g}{prefix}: {met}"


def _amount(record: dict) -> str:
    """The value in words, with its share of the bandwidth where that bounds it."""
    value = record["value"]
    scale, prefix = next((pair for pair in ((1e12, "T "), (1e9, "G "), (1e6, "M ")) if value >= pair[0]), (1.0, ""))
    share = f", {record['bandwidth_share']:.1%} of the copy bandwidth" if "bandwidth_share" in record else ""
    return f"{value / scale:,.4g} {prefix}{record['unit']}{share}"


def _name(peer: dict) -> str:
    return f"ours on {peer['threads']} threads of the CPU" if peer["who"] == "ours" else peer["who"]


def _brief(params: dict) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def _lost(error: Exception) -> bool:
    """Whether the device answers no more: what follows would only fail too."""
    from gpu.device import DeviceError

    return isinstance(error, DeviceError)
