"""Where may be written: not over what a run writes, not over what is there already."""

import numpy as np
import pytest

from hybrid.feeds.video.film import Film
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.formats import fasttext
from hybrid.storage import checkpoint, files, lock, vectors
from hybrid.train import plots, store

WRITERS = {
    "run.json": lambda path: vectors.save(path, ["a"], np.ones((1, 2), np.float32)),
    "vocabulary.json": lambda path: Vocabulary(["a", "b"], [2, 1]).save(path),
    "curve.png": lambda path: plots.curve(path, {"a": [{"seconds": 1, "examples": 1, "loss": 1.0}]}, "loss"),
    "tensorboard": lambda path: Film(path, 25),
    "best": lambda path: checkpoint.save(path, {"a": np.ones(2)}, {}),
    "checkpoint/checkpoint.json": lambda path: fasttext.save(path, ["a"], [["b"]]),
}


@pytest.fixture(params=[store.RUN, lock.LOCK])
def run(request, tmp_path):
    """A folder of a run, or of one that is being begun, by what tells it."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / request.param).write_text("{}")
    return folder


def refused(path):
    with pytest.raises(ValueError, match=r"is a name that the run in .* writes to; name another file"):
        files.refuse_run(path)


@pytest.mark.parametrize("name", WRITERS)
def test_no_function_writes_what_a_run_writes_unless_it_works_there(run, name):
    for _ in range(2):
        before = sorted(run.rglob("*"))
        with pytest.raises(ValueError, match=f"{name}.*name another file"):
            WRITERS[name](run / name)
        assert sorted(run.rglob("*")) == before
    (run / name).parent.mkdir(exist_ok=True)
    with lock.held(run):
        WRITERS[name](run / name)


def test_a_run_is_found_by_any_way_to_it(run, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "file").symlink_to(run / store.RUN)
    monkeypatch.chdir(run)
    by_name = ("report.json", "./best/x", "a/../curve.csv", "RUN.JSON")
    for path in (tmp_path / "link" / "run.json", tmp_path / "file", *by_name):
        refused(path)
    with lock.held(tmp_path / "link"):
        files.refuse_run("report.json")
    for path in ("vectors.txt", "watch.mp4", "trial-001/vectors.txt", tmp_path / "report.json"):
        files.refuse_run(path)


def test_a_file_that_is_there_is_replaced_where_the_user_says_so_or_it_is_the_commands_own(run, tmp_path):
    there, own, new = (tmp_path / name for name in ("mine.txt", "own.txt", "new.txt"))
    for path in (there, own):
        path.write_text("text")
    for path, settings in (
        (there, {"overwrite": True}),
        (there, {"overwrite": True, "inputs": [str(there)]}),
        (new, {"overwrite": False}),
        (own, {"overwrite": False, "own": own, "inputs": [None, "synthetic:3", str(there)]}),
        ("/dev/stdout", {"overwrite": False}),
    ):
        assert str(files.check(path, **settings)) == str(path)
    with pytest.raises(ValueError, match=r"mine.txt: is there already; name another file, or give --overwrite"):
        files.check(there, False, own=own)
    (tmp_path / "link.txt").symlink_to(own)
    with pytest.raises(ValueError, match=r"own.txt: is read by this command.*--overwrite"):
        files.check(own, False, own=own, inputs=[str(tmp_path / "link.txt")])
    with pytest.raises(ValueError, match="name that the run"):
        files.check(run / "report.json", True)
