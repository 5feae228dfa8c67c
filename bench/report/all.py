"""All benchmarks of the report, one process each, then the report: python -m bench all --out DIR [--quick] [--only SECTION]."""

import importlib.util
import sys
from pathlib import Path

from bench.report import runner
from bench.report.section import RESULTS, found_sections, found_steps

COUNTS = True  # its steps take the machine's lock, each for itself
QUICK_REPEAT = "2"
STOPPED = 130  # the exit code, as shells have it
NEEDED = ("markdown_it",)  # of the page


def run(arguments) -> int:
    """Do the steps that are not done yet, then write the report; with --page the report alone."""
    known = list(found_sections())
    if strays := sorted(set(arguments.only or ()) - set(known)):
        return _refused(f"--only: found {strays[0]!r}, expected one of {', '.join(known)}")
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
    if runner.modes(folder / RESULTS) - {arguments.quick}:
        there = "the full sizes" if arguments.quick else "quick mode"
        return _refused(f"--out: {folder} has results of {there}; another folder keeps the two apart")
    folder.mkdir(parents=True, exist_ok=True)
    more = ["--repeat", QUICK_REPEAT if arguments.quick else str(arguments.repeat)]
    given = runner.Settings(folder, arguments.quick, arguments.threads, (*more, *["--anyway"] * arguments.anyway))
    try:
        well = runner.run_steps(found_steps(arguments.only), given)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on where it was", flush=True)
        return _write(folder, STOPPED)
    return _write(folder, 0 if well else 1)


def _write(folder: Path, code: int) -> int:
    """The report of what is there; returns the exit code that it is given."""
    from bench.report import page

    for path in page.write(folder):
        print(path)
    return code


def _refused(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2
