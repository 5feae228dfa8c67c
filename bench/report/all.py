"""All benchmarks of the report, one process each, then the report: python -m bench all --out DIR [--quick] [--only SECTION].

Steps run in sequence into one results.jsonl; finished steps are not repeated. The state of a step is a record of that file too,
so the report needs nothing else. It is "done", "skipped" with what the machine lacks, "failed" with the last line printed, or
"stopped". The next run retries unfinished steps.
"""

import contextlib
import datetime
import importlib.util
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import report
from bench.harness.measure import append, made_by
from bench.harness.quiet import REFUSED
from bench.report.section import RESULTS, STEP, Record, Step, clock, found_sections, found_steps, lacks

ONLY = tuple(found_sections())
COUNTS = True  # each step takes the machine's lock itself
QUICK_REPEAT = "2"
STOPPED = 130  # exit code, as in shells
NEEDED = ("markdown_it",)  # packages that the page needs
LOGS = "logs"
ENDS = 20.0  # seconds that a stopped step has to end
TRIES, WAITS = 10, 30.0  # attempts at a step while the machine is busy; seconds between them


def run(arguments) -> int:
    """Runs the unfinished steps, then writes the report; with --page the report alone."""
    if arguments.json:
        return _refused("--json: all keeps its results in --out DIR, as results.jsonl")
    if not arguments.out:
        return _refused("--out DIR: not given; results and report are kept there")
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        return _refused(f"{', '.join(missing)} not installed: pip install 'hybrid-engine[report]'")
    folder = Path(arguments.out)
    if arguments.page:
        if not (folder / RESULTS).exists():
            return _refused(f"--page: {folder / RESULTS} is not there; without --page it is measured")
        return _write(folder, 0)
    if modes(folder / RESULTS) - {arguments.quick}:
        there = "the full sizes" if arguments.quick else "quick mode"
        return _refused(f"--out: {folder} has results of {there}; another folder keeps the two apart")
    folder.mkdir(parents=True, exist_ok=True)
    more = ["--repeat", QUICK_REPEAT if arguments.quick else str(arguments.repeat)]
    given = Settings(folder, arguments.quick, arguments.threads, (*more, *["--anyway"] * arguments.anyway))
    try:
        well = run_steps(found_steps(arguments.only), given)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on where it was", flush=True)
        return _write(folder, STOPPED)
    return _write(folder, 0 if well else 1)


def _write(folder: Path, code: int) -> int:
    """Writes the report of the results so far; returns the given exit code."""
    from bench.report import page

    for path in page.write(folder):
        print(path)
    return code


def _refused(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


@dataclass(frozen=True)
class Settings:
    """The common settings of all steps. folder: of the results; more: options as --anyway."""

    folder: Path
    quick: bool
    threads: int
    more: tuple[str, ...] = ()


def run_steps(steps: Sequence[tuple[str, Step]], given: Settings) -> bool:
    """Runs the steps, each paired with its section's name; returns True if none failed.

    Raises KeyboardInterrupt, once the running step has ended and is recorded as stopped.
    """
    results = given.folder / RESULTS
    (given.folder / LOGS).mkdir(parents=True, exist_ok=True)
    taken = finished(results)
    well = True
    for number, (section, step) in enumerate(steps, 1):
        command = _command(step, given.quick)
        if command in taken:
            print(f"[{number}/{len(steps)}] {step.name}: done before, in {clock(taken[command])}", flush=True)
            continue
        if reason := lacks(step, given.quick):
            print(f"[{number}/{len(steps)}] {step.name}: skipped, {reason}", flush=True)
            _note(results, section, step, command, given, "skipped", reason=reason)
            continue
        print(
            f"[{number}/{len(steps)}] {step.name}: {command}, about {step.minutes:g} minutes at full size", flush=True
        )
        began = time.monotonic()
        log = given.folder / LOGS / f"{step.name.replace(' ', '-')}.txt"
        try:
            code = _taken([*shlex.split(command), *_options(given, results)], log)
        except KeyboardInterrupt:
            _note(results, section, step, command, given, "stopped", reason="the run was stopped meanwhile")
            raise
        seconds = time.monotonic() - began
        if code:
            well = False
            reason = _last(log) or f"exit code {code}"
            print(f"    not done: {reason} ({log})", flush=True)
            _note(results, section, step, command, given, "failed", reason=reason)
        else:
            taken[command] = seconds
            _note(results, section, step, command, given, "done", seconds=seconds)
    return well


def finished(results: Path) -> dict[str, float]:
    """Returns the finished commands, with their seconds."""
    if not results.exists():
        return {}
    steps = [one for one in report.read([str(results)]) if one["work"] == STEP]
    return {one["params"]["command"]: one["seconds"] for one in steps if one["state"] == "done"}


def modes(results: Path) -> set[bool]:
    """Returns the modes of existing results: quick True, False, both, or none."""
    records = report.read([str(results)]) if results.exists() else []
    return {one["quick"] for one in records if one["work"] == STEP}


def _command(step: Step, quick: bool) -> str:
    """Returns the command as a user types it, without the common settings."""
    words = (*step.quick, "--quick") if quick and step.quick is not None else step.command
    return f"python -m bench {shlex.join(words)}"


def _options(given: Settings, results: Path) -> list[str]:
    return ["--json", str(results.resolve()), "--threads", str(given.threads), *given.more]


def _taken(command: list[str], log: Path) -> int:
    """Runs it, and retries while the machine is busy or another benchmark runs; returns the last exit code."""
    for _ in range(TRIES):
        code = _process(command, log)
        if code != REFUSED:
            break
        print(f"    {_last(log)}; asks again in {WAITS:g} s", flush=True)
        time.sleep(WAITS)
    return code


def _process(command: list[str], log: Path) -> int:
    """Runs it in its own process group, which is gone when this returns or raises; returns its exit code."""
    here = Path(__file__).parents[2]
    paths = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH")]))
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, *command[1:]],
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": paths},
        )
        try:
            return process.wait()
        finally:
            _end(process)


def _end(process: subprocess.Popen) -> None:
    """Interrupts a running process; then kills the rest of its group."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last(log: Path) -> str:
    """Returns the last non-blank line."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _note(
    results: Path,
    section: str,
    step: Step,
    command: str,
    given: Settings,
    state: str,
    *,
    seconds: float = 0.0,
    reason="",
) -> None:
    """Records the state of a step; of several such records of a step the last counts."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record: Record = {"bench": "all", "work": STEP, "who": "ours", "params": {"step": step.name, "command": command}}
    record |= {"section": section, "state": state, "reason": reason, "seconds": seconds, "quick": given.quick}
    append(str(results), [record | {"ended": now} | made_by(given.threads)])
