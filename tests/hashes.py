"""Hashes of short runs, to see whether a change of the code changes a number.

    python -m tests.hashes write FILE      trains, and keeps the hashes of all arrays and the figures of all curves
    python -m tests.hashes compare FILE    trains again and prints what differs; exit code 1 where anything does

It drives the command line and reads safetensors by itself, so one version of this file serves two versions of the package:
run it from another checkout by `PYTHONPATH=CHECKOUT python tests/hashes.py write FILE`. Write and compare on one machine:
bytes differ between CPUs and BLAS libraries, so this is no test of CI.
"""

import argparse
import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HYBRID = [sys.executable, "-c", "import sys; from hybrid.cli import main; sys.exit(main())"]
FIGURES = ("loss", "perplexity", "error", "prediction", "last_frame")  # of a curve's points; its clocks always differ
ENGINE = ["--width", "16", "--threads", "2", "--epochs", "2"]
TRUNK = [*ENGINE, "--trunk", "mlp", "--hidden", "24", "--readout-width", "16", "--batch", "256", "--device", "cpu"]
LANGUAGE = ["language", "--text", "text.txt", *TRUNK]
WORDS = ["words", "--text", "text.txt", "--min-count", "1", "--seed", "1", *ENGINE]
FACTORS = ["factors", "--ratings", "u.data", *TRUNK]
PVM = "pvm --video synthetic --steps 120 --every 20 --threads 2 --device cpu --config".split()
RUNS: dict[str, list[str]] = {
    "language_tree": [*LANGUAGE, "--readout", "tree", "--micro-batches", "2"],
    "language_full": [*LANGUAGE, "--readout", "full", "--eos", "--case", "keep", "--micro-batches", "3"],
    "language_sampled": [*LANGUAGE, "--readout", "sampled", "--negatives", "20", "--activation", "relu"],
    "words_skipgram": [*WORDS, "--readout", "sampled"],
    "words_cbow": [*WORDS, "--model", "cbow", "--readout", "tree"],
    "words_full": [*WORDS, "--readout", "full"],
    "factors_tree": [*FACTORS, "--readout", "tree"],
    "factors_full": [*FACTORS, "--readout", "full"],
    "pvm_quick": [*PVM, "quick.json", "--streams", "3"],
    "pvm_classic": [*PVM, "classic.json"],
}
STOPPED: dict[str, list[str]] = {
    "language_stopped": [*LANGUAGE, "--epochs", "12", "--readout", "tree"],
    "pvm_stopped": [*PVM, "classic.json", "--steps", "1500", "--streams", "2"],
}
BASE = {"grids": [4, 2, 1], "block": 3, "hidden": [6], "wiring": "classic", "predict_steps": 1}
QUICK = BASE | {"init": "classic", "activation": "logistic", "readout": {"kind": "tile", "hidden": [8]}}
QUICK |= {"schedule": [[0, None, 0.02, 0.0], [0, 0, 0.2, None], [60, None, 0.01, None]]}
CLASSIC = BASE | {"unit": "complex", "publish": "minmax", "schedule": [[0, None, 0.01, 0.4]]}
CLASSIC |= {"features": ["signal", "derivative", "integral", "error"]}
CLASSIC |= {"readout": {"kind": "unit", "hidden": [5], "momentum": 0.3}}


def write_data(folder: Path) -> None:
    """A text and ratings in which some of what comes next can be foretold, and two small configurations."""
    draw = random.Random(0)
    words = [f"W{i}" for i in range(400)]
    weights = [1 / (i + 1) for i in range(400)]
    starts = (draw.choices(range(400), weights, k=6) for _ in range(1200))
    lines = (" ".join(f"{words[i]} {words[i * 7 % 400]}" for i in start) for start in starts)
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    rows = (f"{user}\t{(3 * user + time * time) % 151}\t4\t{1000 + time}" for user in range(200) for time in range(15))
    (folder / "u.data").write_text("\n".join(rows) + "\n")
    for name, config in (("quick", QUICK), ("classic", CLASSIC)):
        (folder / f"{name}.json").write_text(json.dumps({"name": name} | config))


def train(folder: Path, arguments: list[str]) -> None:
    """One `hybrid train`, to its end; RuntimeError where it fails."""
    done = subprocess.run([*HYBRID, "--quiet", "train", *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"hybrid train {' '.join(arguments)}: exit code {done.returncode}")


def stop(folder: Path, run: str, arguments: list[str]) -> None:
    """Begin a run and stop it by SIGTERM soon after its first save; RuntimeError where it ended otherwise."""
    process = subprocess.Popen([*HYBRID, "--quiet", "train", *arguments, "--out", run], cwd=folder)
    while process.poll() is None and not (folder / run / "checkpoint" / "checkpoint.json").exists():
        time.sleep(0.01)
    time.sleep(0.4)  # some ticks, wherever that is: a resumed run ends with the same bytes
    process.send_signal(signal.SIGTERM)
    if process.wait() != 128 + signal.SIGTERM:
        raise RuntimeError(f"{run}: ended by itself with exit code {process.returncode} before it could be stopped")


def hashes(run: Path) -> dict[str, Any]:
    """The sha256 of each array of a run's last checkpoint, and the figures of its curve."""
    folder = run / "checkpoint"
    raw = (folder / json.loads((folder / "checkpoint.json").read_text())["file"]).read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    found: dict[str, Any] = {}
    for name, form in json.loads(raw[8:start]).items():
        begin, end = (start + at for at in form["data_offsets"])
        found[name] = hashlib.sha256(f"{form['dtype']} {form['shape']} ".encode() + raw[begin:end]).hexdigest()
    curve = json.loads((run / "report.json").read_text())["curve"]
    return found | {f"curve.{name}": [point[name] for point in curve if name in point] for name in FIGURES}


def all_hashes() -> dict[str, dict[str, Any]]:
    """Of every run, by its name."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        write_data(folder)
        for run, arguments in RUNS.items():
            train(folder, [*arguments, "--out", run])
        for run, arguments in STOPPED.items():
            stop(folder, run, arguments)
            train(folder, ["--resume", run])
        return {run: hashes(folder / run) for run in (*RUNS, *STOPPED)}


def differences(expected: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> list[str]:
    """A line for every run in which something differs."""
    lines = []
    for run in sorted({*expected, *found}):
        before, now = expected.get(run, {}), found.get(run, {})
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if names:
            lines.append(f"{run}: {', '.join(names)}")
    return lines


def main() -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hashes", description="Hashes of short runs.")
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", metavar="FILE", type=Path, help="the hashes, as JSON")
    given = parser.parse_args()
    found = all_hashes()
    if given.action == "write":
        given.file.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    lines = differences(json.loads(given.file.read_text()), found)
    print("\n".join(lines) if lines else f"{len(found)} runs, nothing differs")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
