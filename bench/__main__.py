"""The command line: python -m bench NAME [OPTION...]; for .jsonl files: report FILE..., compare BEFORE AFTER, pages FILE."""

import argparse
import ast
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from bench.harness.quiet import REFUSED

HERE = Path(__file__).parent
WAITS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # how a user says how OpenMP's threads wait
SPINS = "300000"  # OpenMP's own choice, not ours (cpu/runtime/threads.py): on a quiet machine PyTorch is at its best with it
WANTED = {  # what is not measured, but made of files of before: how many, None: any; and which
    "report": (None, "the .jsonl files that --json wrote"),
    "compare": (2, "two .jsonl files, BEFORE and AFTER"),
    "pages": (1, "the results.jsonl of a report"),
}


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {number}, expected 1 or more")
    return number


def _several(text: str) -> list[int]:
    return [_positive(part) for part in text.split(",")]


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


OWN: dict[str, tuple[str, dict[str, Any]]] = {  # options of some benchmarks alone: theirs, and how they are read
    "only": (
        "all busy crossover gpu items language_board large neighbours quality table7 words",
        {"action": "append", "metavar": "WORK"}
        | {"help": "this work, problem, size, case, network, contender or section of the report; may be repeated"},
    ),
    "out": (
        "all gpu",
        {"metavar": "DIR", "help": "where results go, and the report; of gpu unless --json (default: runs)"},
    ),
    "page": ("all", {"action": "store_true", "help": "measure nothing: write the report of what DIR holds"}),
    "tell": ("gpu", {"metavar": "OUT", "help": "print what bench/first_ten.sh left in OUT, as a page of Markdown"}),
    "tolerance": (
        "compare",
        {"type": _positive, "metavar": "PERCENT"}
        | {
            "help": "what two runs of the same code may differ by (default: 5); the exit code is 1 where ours got worse"
        },
    ),
    "seconds": (
        "language_board large quality",
        {
            "type": _several,
            "help": "lengths of training (default: 60,120,240; quality: 480 too; language_board: 120,480,1800)",
        },
    ),
    "ratings": (
        "items",
        {"metavar": "FILE", "help": "ratings of your own instead, as `hybrid train factors` reads them"},
    ),
    "texts": (
        "language_board",
        {"type": _names, "metavar": "TRAIN,VALID,TEST", "help": "three texts of your own instead of WikiText-2"},
    ),
    "readouts": (
        "items language_board large quality",
        {"type": _names, "metavar": "A,B", "help": "these contenders alone (default: all)"},
    ),
    "tries": ("language_board quality", {"type": _positive, "help": "settings of each readout (default: 12)"}),
    "epochs": ("items language_board quality", {"type": _several, "help": "lengths of training: 1,2,4"}),
    "budget": ("language_board quality", {"type": _positive, "help": "seconds of a training of the search at most"}),
    "seeds": (
        "items language_board quality",
        {"type": _positive, "help": "so many of each training (default: 3, of language_board 1)"},
    ),
}


def benchmarks() -> dict[str, tuple[str, str]]:
    """Returns module and first docstring line of each benchmark, a file with a function `run`; imports none."""
    found = {}
    for path in sorted(HERE.glob("*/[a-z]*.py"), key=lambda path: path.stem):
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            found[path.stem] = f"bench.{path.parent.name}.{path.stem}", (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    names = "\n".join(f"  {name:<10} {line}" for name, (_, line) in benchmarks().items())
    parser = argparse.ArgumentParser(
        "python -m bench",
        description="Measure beside peers: check every result, then let the rivals take turns.",
        epilog=f"benchmarks:\n{names}\n\nof .jsonl files:\n  report     print their tables: python -m bench report FILE...\n"
        "  compare    what of the first is better or worse in the second: python -m bench compare BEFORE AFTER\n"
        "  pages      write the tables of README and docs that are the report's: python -m bench pages RESULTS",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="one of the benchmarks below")
    parser.add_argument("files", nargs="*", metavar="FILE", help="for report, compare and pages: .jsonl files")
    parser.add_argument("--json", metavar="FILE", help="append one line a result")
    parser.add_argument("--threads", type=_positive, help="for all rivals (default: all cores that may be used)")
    parser.add_argument("--repeat", type=_positive, help="turns of each rival, at least 5 (default: 7; of all 5)")
    parser.add_argument(
        "--anyway", action="store_true", help="measure on a busy machine too; records say how busy it was"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, not how fast")
    for name, (owners, how) in OWN.items():
        parser.add_argument(f"--{name}", **how | {"help": f"for {', '.join(owners.split())}: {how['help']}"})
    return parser


def misplaced(given: argparse.Namespace) -> str | None:
    """Returns why a benchmark does not take one of the given options; None if it takes all."""
    for option, (owners, _) in OWN.items():
        if getattr(given, option) and given.name not in owners.split():
            return f"{given.name} takes no --{option}, which is for {', '.join(owners.split())}"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Runs one benchmark or prints a report; returns the exit code."""
    chosen = parser()
    given = chosen.parse_intermixed_args(arguments)  # files may come behind options
    if given.name is None:
        chosen.print_help()
        return 0
    if given.name in WANTED:
        return _of_files(chosen, given)
    if given.name not in benchmarks():
        chosen.error(f"NAME: found {given.name!r}, expected one of {', '.join([*benchmarks(), *WANTED])}")
    if given.files:
        chosen.error(f"{given.name} takes no files: {' '.join(given.files)}")
    if reason := misplaced(given):
        chosen.error(reason)
    if given.json:
        try:
            open(given.json, "a").close()  # better to fail now than after the measurement
        except OSError as error:
            chosen.error(f"--json {given.json}: {error.strerror}")
    given.repeat = given.repeat or (5 if given.name == "all" else 7)  # all is to take an hour
    given.threads = given.threads or len(os.sched_getaffinity(0))
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(given.threads)  # read when the libraries are imported, which is below
    if not any(name in os.environ for name in WAITS):
        os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        benchmark = importlib.import_module(benchmarks()[given.name][0])
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        chosen.error(f"{given.name}: {missing}; pip install 'hybrid-engine[bench]'")
    known = getattr(benchmark, "ONLY", ())
    if strays := sorted(set(given.only or ()) - set(known)):
        chosen.error(f"--only: found {strays[0]!r}, expected some of {', '.join(known)}")
    if given.quick or given.tell or getattr(benchmark, "COUNTS", False):
        return benchmark.run(given) or 0
    return _timed(chosen, benchmark, given)


def _timed(chosen: argparse.ArgumentParser, benchmark: Any, given: argparse.Namespace) -> int:
    """Runs a timed benchmark, alone on a quiet machine; returns its exit code, or REFUSED on a busy or taken one."""
    from bench.harness import measure, quiet

    if given.repeat < measure.LEAST:
        chosen.error(
            f"--repeat: found {given.repeat}, expected {measure.LEAST} or more; fewer show something with --quick only"
        )
    try:
        with quiet.alone(quiet.PATH):
            if not given.anyway:
                quiet.check_quiet()
            quiet.laps.begin()
            return benchmark.run(given) or 0
    except (quiet.Taken, quiet.Busy) as refused:
        print(f"not measured: {refused}", file=sys.stderr)
        return REFUSED


def _of_files(chosen: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Prints a report or a comparison, or writes tables of pages; returns the exit code."""
    from bench.harness import report
    from bench.report import page

    count, wanted = WANTED[given.name]
    if not given.files or (count and len(given.files) != count):
        chosen.error(f"{given.name}: found {len(given.files) or 'no'} files, expected {wanted}")
    try:
        if given.name == "compare":
            before, after = (report.read([file]) for file in given.files)
            return report.show_changes(before, after, (given.tolerance or 100 * report.TOLERANCE) / 100)
        records = report.read(given.files)
        lines = [report.tables(records)] if given.name == "report" else page.write_pages(records, page.ROOT)
        print(*lines, sep="\n")
        return 0
    except (OSError, ValueError) as error:
        chosen.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
