"""The results of bench/first_ten.sh as a page of Markdown: python -m bench gpu --tell OUT.

It reads results.jsonl, summary.txt, tests.xml and log.txt, as far as they exist; a truncated last line is skipped.
"""

import contextlib
import json
import re
import xml.etree.ElementTree as xml
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.harness.measure import NOISY
from bench.harness.report import scaled
from bench.report.section import drawn

FEW = 6  # maximum failures of a kind to name
STEP = re.compile(r"== (\S+) \(")
NOTED = re.compile(r"  FAILED |.* is left out: ")


def tell(folder: str) -> int:
    """Prints the page; returns 2 if the folder has no results."""
    out = Path(folder)
    records = read(out / "results.jsonl")
    if not records and not (out / "summary.txt").exists():
        print(f"{out}: found neither results.jsonl nor summary.txt, expected what bench/first_ten.sh wrote")
        return 2
    figures = [record for record in records if "work" in record]
    smoke = [record for record in records if record.get("bench") == "gpu_smoke"]
    parts = {
        "Agreement with NumPy": [*_agreement(smoke), *_tests(out / "tests.xml")],
        "Figures": table(figures),
        "Failures": _failures(out),
        "Steps": [_steps(out)],
    }
    print(*_head(out, records), sep="\n")
    for title, lines in parts.items():
        print("", f"## {title}", "", *lines, sep="\n")
    return 0


def read(path: Path) -> list[dict[str, Any]]:
    """Returns the records of a file, without incomplete lines."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return [record for record in found if isinstance(record, dict)]


def _head(out: Path, records: list[dict]) -> list[str]:
    """Returns device, driver, date, commit, and other facts that the figures depend on."""
    env: dict[str, Any] = next((record["env"] for record in reversed(records) if "env" in record), {})
    device = next((record["device"] for record in records if record.get("device")), "unknown device")
    commit = next((record["commit"] for record in records if "commit" in record), "unknown")
    names = {
        "numpy": "NumPy",
        "torch": "PyTorch",
        "cuda": "CUDA",
        "compiler": "compiled by",
        "cpu": "host",
        "cores": "cores",
    }
    versions = [f"{name} {env[key]}" for key, name in names.items() if key in env]
    clocks = [clock for record in records for clock in (record.get("clocks") or {}).get("sm", ())]
    speed = [f"SM clock {min(clocks):,} to {max(clocks):,} MHz"] if clocks else []
    title = f"# {device}, driver {env.get('gpu_driver') or 'unknown'}, {_day(out)}"
    return [title, "", f"{', '.join([f'Commit `{commit}`', *versions, *speed])}."]


def _day(out: Path) -> str:
    """Returns the time of nvidia-smi's facts; else of the files."""
    stamp = re.search(r"Timestamp +: (.+)", _text(out / "log.txt"))
    with contextlib.suppress(ValueError):
        if stamp:
            return datetime.strptime(stamp[1], "%a %b %d %H:%M:%S %Y").date().isoformat()
    return datetime.fromtimestamp(max(path.stat().st_mtime for path in out.iterdir())).date().isoformat()


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


# Correctness


def _agreement(smoke: list[dict]) -> list[str]:
    """Returns the number of kernels that agree, and each that does not."""
    if not smoke:
        return ["The smoke test left no record."]
    wrong = []
    for record in smoke:
        if record["state"] != "ok":
            off = f"off by {record['error']:.2g}, allowed {record['allowed']:.2g}: " if record["state"] == "off" else ""
            wrong.append(f"* `{record['name']}`: {off}{_short(record['message'] or 'error')}")
    line = f"{len(smoke) - len(wrong)} of {len(smoke)} kernel checks agree with NumPy in float64."
    return [line, *_some(wrong, "results.jsonl")]


def _tests(path: Path) -> list[str]:
    """Returns the number of pytest's tests that passed, and each that did not."""
    if not path.exists():
        return ["", "The kernels' tests left no tests.xml."]
    counts, wrong = {"passed": 0, "failed": 0, "skipped": 0}, []
    with contextlib.suppress(xml.ParseError):  # a truncated file counts as far as it is complete
        for _, case in xml.iterparse(path):
            if case.tag == "testcase" and case.get("name"):
                bad = next((child for child in case if child.tag in ("failure", "error")), None)
                state = "failed" if bad is not None else "skipped" if case.find("skipped") is not None else "passed"
                counts[state] += 1
                if bad is not None:
                    wrong.append(f"* `{case.get('classname')}::{case.get('name')}`: {_short(bad.get('message') or '')}")
    line = "The kernels' tests: " + ", ".join(f"{count:,} {state}" for state, count in counts.items()) + "."
    return ["", line, *_some(wrong, path.name)]


# Figures


def table(records: list[dict]) -> list[str]:
    """Returns a row per figure of ours."""
    if not records:
        return ["No benchmark left a record."]
    header = [
        "benchmark",
        "rate",
        "share of copy bandwidth",
        "target",
        "rate relative to others",
        "relative to the CPU",
    ]
    return drawn([header, *(_row(ours, peers) for ours, peers in _contests(records))])


def _contests(records: list[dict]) -> list[tuple[dict, list[dict]]]:
    """Returns each figure of ours on the device, the first of each contest with its rivals."""
    found: list[tuple[dict, list[dict]]] = []
    first = 0
    for record in records:
        if "bars" in record:  # `bench gpu` judges the first
            first = len(found)
        if record["who"].startswith("ours") and record["device"] != "cpu":
            found.append((record, []))
        elif first < len(found):
            found[first][1].append(record)
    return found


def _row(ours: dict, peers: list[dict]) -> list[str]:
    words = dict.fromkeys([*_words(ours["params"]), *ours["who"].split(", ")[1:]])
    targets = [_target(bar) for bar in ours.get("bars", ()) if bar["met"] is not None]
    others: dict[bool, list[str]] = {False: [], True: []}  # key: on the CPU
    for peer in peers:
        host = peer["device"] == "cpu"
        name = f"{peer['threads']} threads" if host else re.sub(r"^(torch) \S+", r"\1", peer["who"])
        others[host].append(f"{ours['value'] / peer['value']:.3g} x {name}")
    noisy = f" (±{ours['spread'] / 2:.0%})" if ours["spread"] > NOISY else ""
    return [
        f"{ours['work']} {', '.join(words)}".strip(),
        scaled(ours["value"], ours["unit"]) + noisy,
        f"{ours['bandwidth_share']:.0%}" if "bandwidth_share" in ours else "",
        *map("; ".join, (targets, others[False], others[True])),
    ]


def _target(bar: dict[str, Any]) -> str:
    """Returns the promised figure, and the verdict."""
    least, kind = bar["least"], bar["of"]
    whats = {
        "ratio": f"{least:g} x {bar['rival'].strip() or 'the best of others'}",
        "bandwidth_share": f"{least:.0%} of copy",
        "value": scaled(least, "").strip(),
    }
    return f"{whats.get(kind, f'{kind} {least:g}')}: {'met' if bar['met'] else 'missed'}"


def _words(params: dict[str, Any]) -> list[str]:
    """Returns parameters in words: switches that are on and texts unchanged, numbers after their names."""
    found: list[str] = []
    for name, value in params.items():
        if isinstance(value, bool):
            found += [name] * value
        else:
            found.append(value if isinstance(value, str) else f"{name} {value:,.15g}")
    return found


# Failures


def _failures(out: Path) -> list[str]:
    """Returns each step that failed or was skipped, with its log message and line number."""
    begins: dict[str, int] = {}
    notes: dict[str, list[str]] = {}
    step = None
    for number, line in enumerate(_text(out / "log.txt").splitlines(), 1):
        if match := STEP.match(line):
            step = match[1]
            begins[step], notes[step] = number, []
        elif step and NOTED.match(line):
            notes[step].append(f"{_short(line)} (log.txt:{number})")
    found = []
    for line in _text(out / "summary.txt").splitlines():
        name, _, what = line.partition(" ")
        if line.endswith("exit code 0"):
            found += [f"* `{name}`: {note}" for note in notes.get(name, ())]
        else:
            where = f", log.txt:{begins[name]}" if name in begins else ""
            found.append(f"* `{name}`: {'; '.join([what.strip() + where, *notes.get(name, ())])}")
    missing = "None." if (out / "summary.txt").exists() else "Unknown, since summary.txt is missing."
    return _some(found, "log.txt") or [missing]


def _steps(out: Path) -> str:
    """Returns the steps with their seconds, in order."""
    lines = re.findall(r"^(\S+) +(\d+) s, exit code", _text(out / "summary.txt"), re.MULTILINE)
    return ", ".join(f"{name} {seconds} s" for name, seconds in lines) + "." if lines else "summary.txt has none."


def _some(lines: list[str], file: str) -> list[str]:
    return lines if len(lines) <= FEW else [*lines[: FEW - 1], f"* {len(lines) - FEW + 1} more in {file}"]


def _short(text: str, most: int = 140) -> str:
    """Returns the beginning of a text, in one line."""
    line = " ".join(text.split()).replace("|", "/")
    return line if len(line) <= most else line[: most - 3] + "..."
