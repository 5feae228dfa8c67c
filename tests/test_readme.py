"""What the README shows works as it stands there: its Python and its commands, on small files of the names it uses."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.film import Film

README = (Path(__file__).parents[1] / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("hybrid ") and "cuda" not in line  # those are tests/gpu's
]

LONG = ("hybrid train pvm", "hybrid eval runs/pvm", "hybrid pvm compare")  # the first by default takes a minute


@pytest.mark.parametrize("code", PYTHON, ids=["model", "readout", "units", "pvm"])
def test_python(code, capsys):
    space: dict = {}
    exec(compile(code, "README.md", "exec"), space)
    if "units" in space:
        assert float(capsys.readouterr().out.split()[1]) < 1.0  # it begins near 6
    elif "pvm" in space:
        assert space["out"].tick == 19 and capsys.readouterr().out.count("(40, 40, 3)") == 1
    elif "losses" in space:
        assert len([line for line in code.splitlines() if line.strip()]) <= 12
        assert space["losses"][-1] < space["losses"][0] and len(space["ids"][0]) == 5
        assert "nats; the value of the:" in capsys.readouterr().out
    else:
        assert np.isfinite(space["loss"]) and space["ids"].shape == (256, 10) and space["log_probs"].max() < 0


def test_commands(tmp_path, monkeypatch, capsys):
    assert {command.split()[1] for command in COMMANDS} == {"train", "eval", "pvm", "export", "doctor"}
    _write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        few = ["--steps", "40"] if command.startswith(LONG) else []
        assert main([*shlex.split(command)[1:], *few]) == 0, (command, capsys.readouterr().err)
    assert {"watch.mp4", "report.json", "last.png"} <= {path.name for path in Path("runs/pvm").iterdir()}
    assert Path("dream.gif").stat().st_size
    assert Path("vectors.txt").read_text().startswith("20 100\n")


def _write_files(folder: Path) -> None:
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(20)]
    lines = (" ".join(words[(i + t) % 20] for t in range(8)) for i in rng.integers(0, 20, 200))
    (folder / "book.txt").write_text("\n".join(lines))
    pairs = (f"{words[i]}\t{words[j]}\t{rng.random():.2f}" for i in range(5) for j in range(i))
    (folder / "wordsim353.tsv").write_text("\n".join(pairs))
    rows = (f"{u}\t{(u + t) % 15}\t5\t{t}" for u in range(40) for t in range(8))
    with Film(folder / "clip.mp4", 25) as film:
        for image, _ in Scene((60, 60, 3), length=30):
            film.write(image)
    (folder / "u.data").write_text("\n".join(rows) + "\n")
