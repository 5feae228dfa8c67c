"""A run's folder: who may begin there, what is removed for another run, and what is left alone."""

import os
import shutil

import numpy as np
import pytest

from hybrid.storage import checkpoint, lock
from hybrid.storage import files as atomic
from hybrid.train import store
from tests.support.small_runs import Killed


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def made(folder):
    """A run with everything that a run leaves."""
    with store.begun(folder):
        for name in ("config.json", "vocabulary.json", "items.json", *store.AFTER):
            atomic.write(folder / name, [b"{}"])
        (folder / store.TENSORBOARD).mkdir()
        (folder / store.TENSORBOARD / "events.out.tfevents.1.host").write_text("")
        store.keep_options(folder, {"kind": "language", "epochs": 2})
        for tick in range(2):
            facts = {"engine": {"tick": tick}, "facts": {"at": f"tick {tick}"}}
            for name in (checkpoint.CHECKPOINT, store.BEST):
                checkpoint.save(folder / name, {"a": np.full(3, tick)}, facts)
    return folder


@pytest.mark.parametrize("name", ["report.json", "vocabulary.json"])
def test_files_of_the_users_are_not_replaced_unless_he_says_so(tmp_path, name):
    (tmp_path / name).write_text("mine")
    for begin in (store.refuse_strangers, lambda folder: store.begun(folder).__enter__()):
        with pytest.raises(ValueError, match=f"no run, but has {name}, .* name another --out, .* --overwrite"):
            begin(tmp_path)
    assert files(tmp_path) == {name}
    store.refuse_strangers(tmp_path, overwrite=True)
    with store.begun(tmp_path, overwrite=True):
        assert (tmp_path / name).read_text() == "mine"


def test_a_run_that_was_replaced_writes_nothing_into_the_new_one(tmp_path):
    run, words = tmp_path / "run", "the run there was removed, or replaced by another"
    before = files(made(tmp_path / "other"))
    with pytest.raises(OSError, match=words), store.resumed(made(run)):
        shutil.rmtree(run)
        (tmp_path / "other").rename(run)
        with pytest.raises(OSError, match=words):
            store.write_json(run / store.REPORT, {"of": "the old run"})
        checkpoint.save(run / checkpoint.CHECKPOINT, {"a": np.full(3, 7.0)}, {})
    assert files(run) == before
    assert (run / store.REPORT).read_text() == "{}"
    assert checkpoint.read_facts(run)["facts"] == {"at": "tick 1"}


def test_what_is_replaced_is_what_a_run_has_written_and_nothing_else(tmp_path):
    run = made(tmp_path / "run")
    mine = {"watch.mp4", "checkpoint/mine.safetensors", "tensorboard/notes.txt", "report.json.part"}
    for name in mine:
        (run / name).write_text("mine")
    with store.begun(run, overwrite=True):
        assert files(run) == {*mine, lock.LOCK}
    assert not (run / store.RUN).exists()


@pytest.mark.parametrize(("overwrite", "name"), [(False, store.CHECKPOINTS[0]), (True, store.CHECKPOINTS[-1])])
def test_a_checkpoint_without_its_run_is_the_users(tmp_path, overwrite, name):
    checkpoint.save(tmp_path / name, {"a": np.ones(3)}, {})
    before = files(tmp_path)
    with pytest.raises(ValueError, match="holds a checkpoint, but no run"):
        store.refuse_taken(tmp_path, overwrite)
    with pytest.raises(ValueError, match="holds a checkpoint"), store.begun(tmp_path, overwrite):
        pass
    assert files(tmp_path) - before <= {lock.LOCK}


def test_a_kill_while_a_run_is_removed_leaves_one_that_begins_anew(tmp_path, monkeypatch):
    """What is removed first is what a run goes on from; run.json goes before what stood there before it."""
    unlink, seen = os.unlink, []
    for kill in range(100):
        run = made(tmp_path / str(kill))
        left = [kill]

        def killed(path, *more, left=left, **named):
            if not left[0]:
                raise Killed
            left[0] -= 1
            unlink(path, *more, **named)

        with monkeypatch.context() as patch, pytest.raises((Killed, EOFError)):
            patch.setattr(os, "unlink", killed)
            with store.begun(run, overwrite=True):
                raise EOFError  # all is removed
        seen.append((checkpoint.stands(run / "checkpoint"), (run / store.RUN).exists(), (run / "config.json").exists()))
        with store.begun(run, overwrite=True):
            assert files(run) <= {lock.LOCK, "config.json", "vocabulary.json", "items.json"}
        if left[0]:
            break
    order = [(True, True, True), (False, True, True), (False, False, True), (False, False, False)]
    assert list(dict.fromkeys(seen)) == order


def test_to_go_on_a_folder_must_hold_a_run(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(ValueError, match=r"holds no run \(no run.json\)"), store.resumed(folder):
            pass
    assert not files(tmp_path)
    for text, said in (
        ("{", "not JSON"),
        ("[]", "no options of a run"),
        ('{"kind": "spam"}', "no options of a run"),
        ('{"kind": "words", "data": 1}', "no options of a run"),
    ):
        (tmp_path / store.RUN).write_text(text)
        with pytest.raises(ValueError, match=said):
            store.options_of(tmp_path)


NAMES = ["report.json", "curve.jsonl", "best", "checkpoint/checkpoint.json", "checkpoint/checkpoint.previous.json"]


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_links_or_pipes_where_it_writes_is_refused_and_what_they_point_to_stays(tmp_path, name):
    """A run of a stranger's, unpacked, would otherwise write wherever this user can, or wait."""
    run, mine = made(tmp_path / "run"), tmp_path / "mine"
    content = (run / name).read_bytes() if (run / name).is_file() else b"mine"
    mine.write_bytes(content)
    if (run / name).is_dir():
        (run / name).rename(tmp_path / "moved")
    for put, found in (((run / name).symlink_to, "a link"), (lambda _: os.mkfifo(run / name), "a pipe or a device")):
        (run / name).unlink(missing_ok=True)
        put(mine)
        for opened in (store.resumed(run), store.begun(run, overwrite=True)):
            with pytest.raises(ValueError, match=f"{run / name}: found {found}, expected a file of the run"), opened:
                pass
        assert mine.read_bytes() == content and ((run / name).is_symlink() or (run / name).is_fifo())
