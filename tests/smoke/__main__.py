"""Every GPU kernel once, small, against NumPy in float64: python -m tests.smoke [--json FILE] [NAME...].

A line a case (tests/smoke/cases.py), as it comes:

    ok  NAME  worst relative error  milliseconds
    off by X (allowed Y)  NAME  milliseconds  of what
    error NAME: TypeOfError: message

A case runs in a child process. Where the child dies, hangs, or loses its device, that case is an error, and another child goes
on with the next one. It needs NumPy and PyCUDA alone. Under `python -m tests.cudasim` it runs on the simulated driver. The
exit code is 1 where a case is not ok.
"""

import argparse
import ctypes
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.harness.measure import commit

ROOT = Path(__file__).parents[2]
LIMIT, START = 10.0, 60.0  # seconds of a case; of a child before its first one, which may have kernels to compile
SLOWER = 8  # times as long it may take on the simulated driver
TRIES = 2  # children that end before their first case, one after another
LOST = 3  # exit code of a child whose device is lost
PR_SET_PDEATHSIG = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the cases that are named, or begin with a name, or all; returns the exit code."""
    parser = argparse.ArgumentParser("python -m tests.smoke", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases, or what their names begin with (default: all)")
    parser.add_argument("--json", metavar="FILE", help="append a line a case")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a case (default: %(default)g)")
    parser.add_argument("--cases", default="tests.smoke.cases", help=argparse.SUPPRESS)  # a module: for tests
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)  # run them here, a JSON line each
    given = parser.parse_args(arguments)
    if given.child:
        return child(given.cases, given.names)
    module = importlib.import_module(given.cases)
    wanted = [name for name in module.CASES if not given.names or name.startswith(tuple(given.names))]
    if unknown := [name for name in given.names if not any(case.startswith(name) for case in wanted)]:
        parser.error(f"found {unknown[0]!r}, expected some of {', '.join(module.CASES)}")
    return watch(wanted, given)


# The parent, which touches no device


def watch(names: Sequence[str], given: argparse.Namespace) -> int:
    """Print and keep the outcome of each case as it comes; the exit code."""
    counts = {"ok": 0, "off": 0, "error": 0}
    always = {"bench": "gpu_smoke", "commit": commit()}
    command = [sys.executable, "-m", "tests.smoke", "--child", "--cases", given.cases]
    for found in outcomes(names, command, given.limit * (SLOWER if os.environ.get("CUDASIM") else 1)):
        counts[found["state"]] += 1
        print(line(found), flush=True)
        if given.json:
            with open(given.json, "a") as file:
                file.write(json.dumps(always | found) + "\n")
    print(", ".join(f"{count} {state}" for state, count in counts.items()), flush=True)
    return int(counts["ok"] < len(names))


def outcomes(names: Sequence[str], command: list[str], limit: float) -> Iterator[dict[str, Any]]:
    """What became of each case, in order; command: of a child, without names; limit: seconds of a case."""
    left, device, idle, why = list(names), None, 0, None
    while left and idle < TRIES:
        run = subprocess.Popen([*command, *left], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
        begun, why, idle = None, None, idle + 1
        while left and why is None:
            told = heard(run, limit if begun else START / LIMIT * limit)
            why, device = told.get("ended"), told.get("device", device)
            if "begins" in told:
                begun, idle = time.perf_counter(), 0
            elif "state" in told:
                left.remove(told["name"])
                yield told | {"device": device}
                begun = None
        run.kill()  # one that is stuck in the driver goes when that lets it
        if begun:
            seconds = time.perf_counter() - begun
            yield outcome(left.pop(0), "error", message=why, device=device, seconds=seconds)
    for name in left:  # no child gets as far as its first case
        yield outcome(name, "error", message=why, device=device, seconds=0.0)


def heard(run: subprocess.Popen[bytes], limit: float) -> dict[str, Any]:
    """What a child tells next; "ended" says why nothing more comes, or nothing within so many seconds."""
    assert run.stdout
    if not select.select([run.stdout], [], [], limit)[0]:
        return {"ended": f"hung: nothing came in {limit:g} s"}
    if not (line := run.stdout.readline()):
        code = run.wait()
        return {"ended": f"the process ended, {f'killed by signal {-code}' if code < 0 else f'exit code {code}'}"}
    told: dict[str, Any] = json.loads(line)
    return told


def outcome(name: str, state: str, **more: Any) -> dict[str, Any]:
    """A record, where nothing is known but what is given."""
    nothing: dict[str, Any] = {"error": None, "allowed": None, "relative": None, "message": None, "kernels": []}
    return {"name": name, "state": state} | nothing | more


def line(found: dict[str, Any]) -> str:
    """A record as it is printed."""
    name, spent = found["name"], f"{1e3 * found['seconds']:.0f} ms"
    if found["state"] == "error":
        return f"error {name}: {found['message']}"
    if found["state"] == "off":
        return f"off by {found['error']:.3g} (allowed {found['allowed']:.3g})  {name}  {spent}, {found['message']}"
    return f"ok  {name:<32} {found['relative']:8.1e}  {spent}"


# The child


def child(cases: str, names: Sequence[str]) -> int:
    """Run cases in this process; the exit code. One who loses the device ends with the case that did."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes beside
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with its parent
    module = importlib.import_module(cases)

    def tell(**told: Any) -> None:
        print(json.dumps(told), file=out, flush=True)

    try:
        gpu = module.open_gpu()
    except Exception as error:
        tell(ended=said(error))
        return 1
    tell(device=gpu.name)
    for name in names:
        tell(begins=name)
        began = time.perf_counter()
        try:
            found, lost = judged(name, *gpu.run(module.CASES[name])), False
        except Exception as error:
            found, lost = outcome(name, "error", message=said(error)), gpu.lost()
        tell(**found, seconds=time.perf_counter() - began)
        if lost:
            os._exit(LOST)  # nothing can be released
    gpu.device.close()
    return 0


def said(error: Exception) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def judged(name: str, checks: Sequence[Any], kernels: Sequence[str] = ()) -> dict[str, Any]:
    """The outcome of a case by the worst of its checks; kernels: those that it launched."""
    distances = [check.distances() for check in checks]
    error, allowed, _ = worst = max(distances, key=lambda one: one[0] / max(one[1], 1e-30))
    relative = max(one[0] / max(one[2], 1e-30) for one in distances)
    found = {"error": error, "allowed": allowed, "relative": relative, "kernels": [*kernels]}
    if error <= allowed:
        return outcome(name, "ok", **found)
    return outcome(name, "off", **found, message=checks[distances.index(worst)].what)


if __name__ == "__main__":
    sys.exit(main())
