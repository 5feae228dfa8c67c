"""The kernels, compiled at once; the tests that need a device, run by pytest in a process of its own, and their record."""

import concurrent.futures
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path
from typing import Any

from bench.measure import commit, environment
from gpu import kernels

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests/gpu", "tests/twins")
# They find the same on any machine, and compile for minutes
ANYWHERE = ("tests/gpu/test_ptxas.py", "tests/gpu/test_sass.py")
NEEDS = ("pytest", "hypothesis")  # without which no test starts
QUICK = "test_rows.py or test_units.py or test_device.py"  # of a quick look: all are imported, these run
LIMIT = 240.0  # seconds, of kernels that are compiled; the measurement should have its time too
WORKERS = max(2, min(8, (os.cpu_count() or 1) // 2))  # processes that share the device; tests of one file stay together
COUNTS = ("tests", "failures", "errors", "skipped")
LAST = 150  # lines shown of a suite that fails


def compile_kernels(capability: tuple[int, int]) -> str:
    """Compile every kernel for such a device, several at a time; says what was done. OSError where one does not compile."""
    began = time.perf_counter()
    target, sources = kernels.target(capability), sorted(kernels.HERE.glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source: kernels.cubin(source, target), sources))
    return f"{len(sources)} files for {target} in {time.perf_counter() - began:.0f} s"


def run_tests(device: str, folders=FOLDERS, quick: bool = False, limit: float = LIMIT) -> tuple[dict[str, Any], str]:
    """The record of a run of the tests, and what to print of it; the record's `checked` says whether all passed."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        text = f"the tests were not run: {' and '.join(missing)} missing"
        return _record(device, folders, dict.fromkeys(COUNTS, 0), 0.0, text), text
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        report = Path(made, "report.xml")
        chosen = [folder for folder in folders if Path(ROOT, folder).exists()]
        code, output = _pytest([*chosen, *(["-k", QUICK] if quick else [])], report, limit)
        counts = _counts(report)
    seconds = time.perf_counter() - began
    failed = counts["failures"] + counts["errors"]
    text = f"{_passed(counts)} passed, {failed} failed, {counts['skipped']} skipped in {seconds:.0f} s"
    if absent := sorted(set(re.findall(r"could not import '([\w.]+)'", output))):
        text += f"; skipped for want of {', '.join(absent)}"
    if code is None:
        text += f"; stopped after {limit:.0f} s"
    ok = code == 0 and _passed(counts) > 0
    if not ok:
        text = "\n".join([*output.splitlines()[-LAST:], f"{text}; pytest's exit code: {code}"])
    return _record(device, folders, counts, seconds, None if ok else text), text


def _pytest(chosen: list[str], report: Path, limit: float) -> tuple[int | None, str]:
    """Exit code, None where it took too long, and output."""
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={report}"]
    command += ["-W", "default", *chosen]  # what versions that nobody has tried warn of is no failure of ours
    command += [f"--ignore={file}" for file in ANYWHERE]
    if importlib.util.find_spec("xdist"):
        command += ["-n", str(WORKERS), "--dist", "loadfile"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        return None, output.decode(errors="replace") if isinstance(output, bytes) else output
    return done.returncode, done.stdout


def _counts(report: Path) -> dict[str, int]:
    if not report.exists():
        return dict.fromkeys(COUNTS, 0)
    suites = list(xml.parse(report).getroot().iter("testsuite"))
    return {name: sum(int(suite.get(name, 0)) for suite in suites) for name in COUNTS}


def _passed(counts: dict[str, int]) -> int:
    return counts["tests"] - counts["failures"] - counts["errors"] - counts["skipped"]


def _record(device: str, folders, counts: dict[str, int], seconds: float, failure: str | None) -> dict[str, Any]:
    """In the format of bench/measure.py: the value is how many tests passed."""
    passed = float(_passed(counts))
    return {
        "bench": "gpu",
        "work": "gpu.tests",
        "who": "ours",
        "params": {"folders": list(folders)},
        "unit": "tests",
        "value": passed,
        "samples": [passed],
        "seconds": seconds,
        "spread": 0.0,
        "checked": failure is None,
        "threads": WORKERS,
        "device": device,
        "commit": commit(),
        "env": environment(),
        "counts": counts,
        "failure": failure,
    }
