"""How long a user waits for the first tick: of every kind of model, with no kernel compiled yet and with all of them.

Each start is a process of its own, with a folder of kernels of its own. The clock runs from before the interpreter is there
to the end of the first tick. Processor seconds, of all threads and of the processes that it began, are steadier.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from bench.measure import append, commit, environment

STARTS: dict[str, list[str]] = {  # the command of each model; TEXT is replaced by the file of a text
    "language": ["language", "--text", "TEXT"],
    "words": ["words", "--text", "TEXT"],
    "pvm quick": ["pvm", "--config", "quick"],
    "pvm small": ["pvm", "--config", "small"],
}
FEW = 12  # kernels that are shown
BEGUN = "HYBRID_BENCH_BEGUN"  # tells the process when the clock was started


def run(arguments) -> None:
    """First ticks, cold and warm, and the kernels that took longest."""
    from hybrid import text

    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "book.txt")
        book.write_text("\n".join(" ".join(line) for line in text.documentation()))
        for name in list(STARTS)[:1] if arguments.quick else STARTS:
            command = [str(book) if word == "TEXT" else word for word in STARTS[name]]
            turns = 1 if arguments.quick else min(arguments.repeat, 3)
            cold, warm = zip(*(_both(command, Path(folder, f"{name}{turn}")) for turn in range(turns)), strict=True)
            _show(name, cold, warm)
            append(arguments.json, [_record(name, *found) for found in (("cold", cold), ("warm", warm))])


def _both(command: list[str], folder: Path) -> tuple[dict, dict]:
    """A start that compiles, and the same again, which does not."""
    return _start(command, folder, "cold"), _start(command, folder, "warm")


def _start(command: list[str], folder: Path, out: str) -> dict[str, Any]:
    """What `main` below printed at the first tick."""
    told = {"NUMBA_CACHE_DIR": str(folder), BEGUN: str(time.clock_gettime(time.CLOCK_MONOTONIC))}
    line = [sys.executable, "-m", "bench.cold", "train", *command, "--quiet", "--out", str(folder / out)]
    done = subprocess.run(line, env=os.environ | told, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(arguments: list[str]) -> None:
    """In a process of its own: the command `hybrid`, which ends after the first tick and prints what it took."""
    from numba.core import event

    import hybrid.cli
    from hybrid.train import loop

    clock = _clock(event.Listener)
    event.register("numba:compile", clock)

    def first(run: Any, tick: Any, bar: Any) -> None:
        processor, slowest = os.times(), sorted(clock.seconds.items(), key=lambda one: -one[1])
        found = {
            "seconds": time.clock_gettime(time.CLOCK_MONOTONIC) - float(os.environ[BEGUN]),
            "processor_seconds": processor.user + processor.system,
            "compiling": sum(clock.seconds.values()),
            "functions": sum(clock.counts.values()),
            "kernels": [(name, clock.counts[name], seconds) for name, seconds in slowest[:FEW]],
        }
        print(json.dumps(found), flush=True)
        os._exit(0)  # threads of queues are at work

    loop.Run._note = first  # type: ignore[assignment, method-assign]
    sys.exit(hybrid.cli.main(arguments))


def _clock(base: type) -> Any:
    class Clock(base):
        """Seconds that each function took to compile, without those that it calls, and for how many types it was compiled."""

        def __init__(self) -> None:
            self.seconds: defaultdict[str, float] = defaultdict(float)
            self.counts: Counter[str] = Counter()
            self._open: list[list[float]] = []  # of each function under way: when it began, seconds of those within it

        def on_start(self, event: Any) -> None:
            self._open.append([time.perf_counter(), 0.0])

        def on_end(self, event: Any) -> None:
            begun, inner = self._open.pop()
            whole = time.perf_counter() - begun
            if self._open:
                self._open[-1][1] += whole
            function = event.data["dispatcher"].py_func
            name = f"{function.__module__}.{function.__name__}"
            self.seconds[name] += whole - inner
            self.counts[name] += 1

    return Clock()


def _show(name: str, cold: list[dict], warm: list[dict]) -> None:
    """The first tick, cold and warm, and the kernels that took longest."""
    for state, found in (("cold", cold), ("warm", warm)):
        seconds, processor, compiling = (
            statistics.median(one[figure] for one in found) for figure in ("seconds", "processor_seconds", "compiling")
        )
        print(
            f"{name:<10} {state}: first tick after {seconds:5.2f} s (processor {processor:5.2f} s), of which compiling "
            f"{found[0]['functions']} functions {compiling:5.2f} s"
        )
    for kernel, types, seconds in cold[0]["kernels"]:
        print(f"  {seconds:6.2f} s  {types} x {kernel}")
    print(flush=True)


def _record(name: str, state: str, found: list[dict]) -> dict[str, Any]:
    values = [one["seconds"] for one in found]
    value = statistics.median(values)
    return {
        "bench": "cold", "work": f"cold.{name}", "who": "ours", "params": {"cache": state}, "unit": "s", "value": value,
        "samples": values, "spread": (max(values) - min(values)) / value, "checked": True, "threads": 1, "device": "cpu",
        "processor_seconds": statistics.median(one["processor_seconds"] for one in found), "kernels": found[0]["kernels"],
        "commit": commit(), "env": environment(),
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
