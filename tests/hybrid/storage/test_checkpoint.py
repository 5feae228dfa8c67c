"""Saves survive crashes, full disks and strangers; what comes back is what was saved, bit for bit."""

import errno
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from hybrid.storage import atomic, checkpoint

FACTS = {"tick": 7, "loss": 0.1 + 0.2, "seed": 2**127, "names": ["ä", None, True], "nested": {"rate": 1e-300}}


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "odd": rng.integers(0, 255, 3, np.uint8),  # would leave what follows unaligned, were it not put last
        "table": rng.normal(size=(50, 8)).astype(np.float32),
        "exact": np.array([[np.pi, np.nan, -0.0, np.inf]]),
        "ids": np.arange(-3, 4, dtype=np.int32),
        "offsets": np.array([2**62], np.int64),
        "scalar": np.array(5, np.int16),
        "empty": np.empty((0, 8), np.float32),
        "flags": np.array([True, False]),
    }


def same(one, other):
    """The same names, dtypes, shapes and bytes."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


def tensor_file(source: Path) -> Path:
    return source.parent / json.loads(source.read_text())["file"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_saved_comes_back(tmp_path):
    source = checkpoint.save(tmp_path / "new" / "run", arrays(), FACTS)
    for path in (source, source.parent, str(source.parent)):
        loaded, facts = checkpoint.load(path)
        assert same(loaded, arrays())
        assert facts == FACTS
    assert checkpoint.read_facts(source.parent) == FACTS


def test_load_into_fills_the_live_arrays(tmp_path):
    checkpoint.save(tmp_path, arrays(), FACTS)
    live = {name: np.zeros_like(array) for name, array in arrays().items()}
    views = dict(live)
    assert checkpoint.load_into(tmp_path, live) == FACTS
    assert same(views, arrays())


def test_no_arrays_at_all(tmp_path):
    checkpoint.save(tmp_path, {}, FACTS)
    assert checkpoint.load(tmp_path) == ({}, FACTS)


def test_the_library_of_the_format_reads_the_file(tmp_path):
    path = tensor_file(checkpoint.save(tmp_path, arrays(), {}))
    assert same(safetensors.numpy.load_file(path), arrays())


def test_arrays_lie_aligned(tmp_path):
    raw = tensor_file(checkpoint.save(tmp_path, arrays(), {})).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert (8 + length) % 8 == 0
    for name, place in json.loads(raw[8 : 8 + length]).items():
        assert place["data_offsets"][0] % arrays()[name].itemsize == 0


def test_equal_runs_write_equal_bytes(tmp_path):
    for run in ("a", "b"):
        checkpoint.save(tmp_path / run, arrays(), FACTS)
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_latest_and_previous_are_kept_and_no_more(tmp_path):
    for tick in range(4):
        checkpoint.save(tmp_path, arrays(tick), {"tick": tick})
    for name, tick in ((checkpoint.LATEST, 3), (checkpoint.PREVIOUS, 2)):
        loaded, facts = checkpoint.load(tmp_path / name)
        assert facts == {"tick": tick}
        assert same(loaded, arrays(tick))
    assert len(content(tmp_path)) == 4


def test_a_save_of_the_same_arrays_keeps_them_for_both(tmp_path):
    for tick in range(3):
        checkpoint.save(tmp_path, arrays(), {"tick": tick})
    assert same(checkpoint.load(tmp_path / checkpoint.PREVIOUS)[0], arrays())
    assert len(content(tmp_path)) == 3


def test_files_of_others_are_left_alone(tmp_path):
    others = (
        "vectors.safetensors", "tensors-mine.safetensors", "checkpoint-mine.tmp", "checkpoint.json.part", ".tensors.mine.part"
    )  # fmt: skip
    for name in others:
        (tmp_path / name).write_text("mine")
    for tick in range(3):
        checkpoint.save(tmp_path, arrays(tick), {})
    assert len(content(tmp_path)) == 4 + len(others)
    checkpoint.erase(tmp_path)
    assert content(tmp_path).keys() == set(others)


def test_an_erased_checkpoint_is_gone_with_its_folder(tmp_path):
    folder = tmp_path / "run"
    checkpoint.erase(folder)  # which is not there
    for tick in range(2):
        checkpoint.save(folder, arrays(tick), {})
    assert checkpoint.stands(folder)
    checkpoint.erase(folder)
    assert not checkpoint.stands(folder) and not folder.exists()


def test_a_checkpoint_is_found_by_the_folder_of_its_run(tmp_path):
    checkpoint.save(tmp_path / "run" / checkpoint.CHECKPOINT, arrays(), FACTS)
    assert checkpoint.read_facts(tmp_path / "run") == FACTS
    assert same(checkpoint.load(tmp_path / "run")[0], arrays())
    with pytest.raises(FileNotFoundError, match=r"run2/checkpoint.json: no such checkpoint"):
        (tmp_path / "run2").mkdir()
        checkpoint.load(tmp_path / "run2")


def test_what_a_checkpoint_names_is_on_the_disk_before_it_is_named(tmp_path, monkeypatch):
    """The order that a power cut asks for: bytes, then their name, then the name's folder, then what names them."""
    done, fsync, replace = [], os.fsync, os.replace
    folder = tmp_path / "run"

    def kind(path: str) -> str:
        return (
            "folder" if Path(path).is_dir() else re.search(r"tensors|previous|checkpoint(?=.json)", Path(path).name)[0]
        )

    def synced(descriptor):
        done.append("sync " + kind(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def renamed(source, target):
        done.append("name " + kind(target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    for tick in range(2):
        checkpoint.save(folder, arrays(tick), {})
    tensors = ["sync tensors", "name tensors", "sync folder"]
    latest = ["sync checkpoint", "name checkpoint", "sync folder"]
    first, second = (
        ["sync folder", *tensors, *latest],
        [*tensors, "sync previous", *latest, "name previous", "sync folder"],
    )
    assert done == first + second


def test_two_writers_of_one_folder_take_turns(tmp_path):
    """Two processes that save to one folder all the while: every save is whole, and so is the last of each kind."""
    script = f"""
import sys
import numpy as np
from hybrid.storage import checkpoint
for turn in range(40):
    checkpoint.save({str(tmp_path)!r}, {{"a": np.full(5000, turn), "who": np.array(int(sys.argv[1]))}}, {{}})
"""
    both = [subprocess.Popen([sys.executable, "-c", script, str(who)], stderr=subprocess.PIPE) for who in range(2)]
    while any(one.poll() is None for one in both):
        for name in (checkpoint.LATEST, checkpoint.PREVIOUS):
            if (tmp_path / name).exists():
                json.loads((tmp_path / name).read_text())
    assert [one.communicate()[1] for one in both] == [b"", b""]
    for name in (checkpoint.LATEST, checkpoint.PREVIOUS):
        assert set(checkpoint.load(tmp_path / name)[0]) == {"a", "who"}
    assert len(content(tmp_path)) == 4


def test_a_small_file_that_tells_of_much_takes_no_memory(tmp_path):
    source = checkpoint.save(tmp_path, arrays(), {})
    assert checkpoint.numbers(tmp_path) == sum(array.size for array in arrays().values())
    manifest = json.loads(source.read_text())
    manifest.pop("checksum")
    manifest["arrays"]["table"]["shape"] = [10**9, 8]
    source.write_text(json.dumps(manifest | {"checksum": checkpoint._checksum(manifest)}))
    with pytest.raises(ValueError, match=r"truncated: found \d+ bytes, expected 3\d{10}"):
        checkpoint.numbers(tmp_path)
    with pytest.raises(ValueError, match="truncated"):
        checkpoint.load(tmp_path)


@pytest.mark.parametrize("failure", [TypeError("rows"), KeyError("rows"), AttributeError("rows")])
def test_facts_that_tell_of_no_model_name_their_file(failure):
    with pytest.raises(ValueError, match=r"run: tells of no model .*rows"), checkpoint.told("run"):
        raise failure


RENAMES = ["tensors-", "checkpoint.json", "checkpoint.previous.json"]


@pytest.mark.parametrize("rename", range(len(RENAMES)), ids=RENAMES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_any_rename_leaves_a_whole_checkpoint(tmp_path, monkeypatch, rename, when):
    """The process dies before or after a rename: nothing is tidied, and this is what the next process finds."""
    for tick in range(2):
        checkpoint.save(tmp_path, arrays(tick), {"tick": tick})
    with monkeypatch.context() as patch, pytest.raises(Crash):
        crash_at_rename(patch, RENAMES[rename], when)
        checkpoint.save(tmp_path, arrays(2), {"tick": 2})
    done = rename + (when == "after")  # renames that took place
    for name, tick in ((checkpoint.LATEST, 2 if done > 1 else 1), (checkpoint.PREVIOUS, 1 if done > 2 else 0)):
        loaded, facts = checkpoint.load(tmp_path / name)
        assert facts == {"tick": tick}
        assert same(loaded, arrays(tick))
    checkpoint.save(tmp_path, arrays(3), {"tick": 3})
    assert same(checkpoint.load(tmp_path)[0], arrays(3))
    assert len(content(tmp_path)) == 4


class Crash(BaseException):
    pass


def crash_at_rename(patch, name, when):
    """Die at the rename to a file whose name begins so."""
    rename = os.replace

    def crashing(source, target):
        there = target.name.startswith(name)
        if not there or when == "after":
            rename(source, target)
        if there:
            raise Crash

    patch.setattr(os, "replace", crashing)
    patch.setattr(checkpoint, "_tidy", lambda *_: None)
    patch.setattr(atomic, "_forget", lambda _: None)


def test_a_killed_save_is_tidied_by_the_next(tmp_path):
    for name in ("tensors", "checkpoint.json", "checkpoint.previous.json"):
        atomic.part(tmp_path / name).write_text("half")
    (tmp_path / f"tensors-{'0' * 16}.safetensors").write_text("never named")
    checkpoint.save(tmp_path, arrays(), {})
    assert len(content(tmp_path)) == 2


def test_an_interrupted_save_leaves_nothing_behind(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, arrays(), FACTS)
    before = content(tmp_path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, arrays(1), {})
    assert content(tmp_path) == before


class FullDisk:
    """A file on a disk that has room for `room` more bytes."""

    room = 0

    def __init__(self, file):
        self._file = file

    def writelines(self, pieces):
        for piece in pieces:
            FullDisk.room -= memoryview(piece).nbytes
            if FullDisk.room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._file.write(piece)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()


@pytest.mark.parametrize("room", [0, 1000, 2800, 3000, 4000])
def test_a_full_disk_is_named_and_harms_nothing(tmp_path, monkeypatch, room):
    for tick in range(2):
        checkpoint.save(tmp_path, arrays(tick), FACTS)
    before = content(tmp_path)
    monkeypatch.setattr(atomic, "open", lambda *how: FullDisk(open(*how)), raising=False)
    FullDisk.room = room
    with pytest.raises(OSError, match=rf"{tmp_path}: No space left on device: it needs 0.0 MB, [\d,.]+ MB are free"):
        checkpoint.save(tmp_path, arrays(2), FACTS)
    assert content(tmp_path) == before


def test_a_limit_on_file_size_is_named_and_harms_nothing(tmp_path):
    checkpoint.save(tmp_path, arrays(), FACTS)
    before = content(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, hard))
    try:
        with pytest.raises(OSError, match=r"File too large: it needs 4\.2 MB"):
            checkpoint.save(tmp_path, {"table": np.ones(2**20, np.float32)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert content(tmp_path) == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match=r"taken: .*: it needs"):
        checkpoint.save(tmp_path / "taken", arrays(), {})
    with pytest.raises(OSError, match="run: Not a directory: it needs"):
        checkpoint.save(tmp_path / "taken" / "run", arrays(), {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="Permission denied"):
        checkpoint.save(tmp_path, arrays(), {})


@pytest.mark.parametrize("facts", [{"loss": float("nan")}, {"when": object()}, {"table": np.ones(2)}])
def test_facts_that_json_cannot_say_are_refused(tmp_path, facts):
    with pytest.raises(ValueError, match="facts: expected what JSON can say"):
        checkpoint.save(tmp_path, arrays(), facts)
    assert content(tmp_path) == {}


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([object()]), "found object, expected one of float64"),
        (np.ones(2, ">f4"), "found >f4"),
        (np.ones((4, 4))[:, ::2], "found strides"),
        (np.array(["text"]), "found <U4"),
    ],
)
def test_arrays_that_cannot_be_saved_are_refused(tmp_path, array, message):
    with pytest.raises(ValueError, match=message):
        checkpoint.save(tmp_path, {"bad": array}, {})
    assert content(tmp_path) == {}


def damage(source: Path, how: str) -> None:
    """Spoil a checkpoint in one way."""
    tensors, text = tensor_file(source), source.read_text()
    if how == "tensors truncated":
        tensors.write_bytes(tensors.read_bytes()[:-1])
    elif how == "tensors longer":
        tensors.write_bytes(tensors.read_bytes() + b"\0")
    elif how == "tensors altered":
        raw = bytearray(tensors.read_bytes())
        raw[-1] ^= 1
        tensors.write_bytes(raw)
    elif how == "tensors missing":
        tensors.unlink()
    elif how == "facts truncated":
        source.write_text(text[:-10])
    elif how == "facts altered":
        source.write_text(text.replace('"tick": 7', '"tick": 8'))
    elif how == "facts empty":
        source.write_text("")
    elif how == "facts missing":
        source.unlink()
    elif how == "another JSON file":
        source.write_text("[1, 2]")
    elif how == "another format":
        source.write_text(text.replace('"format": 1', '"format": 99'))


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("tensors truncated", ValueError, r"tensors-\w+.safetensors: truncated: found \d+ bytes, expected \d+"),
        ("tensors longer", ValueError, r"tensors-\w+.safetensors: truncated: found \d+ bytes, expected \d+"),
        ("tensors altered", ValueError, r"tensors-\w+.safetensors: altered since it was saved"),
        ("tensors missing", FileNotFoundError, r"tensors-\w+.safetensors: missing, and .*checkpoint.json needs it"),
        ("facts truncated", ValueError, "checkpoint.json: truncated, or not a checkpoint"),
        ("facts altered", ValueError, "checkpoint.json: altered since it was saved"),
        ("facts empty", ValueError, "checkpoint.json: truncated, or not a checkpoint"),
        ("facts missing", FileNotFoundError, "checkpoint.json: no such checkpoint"),
        ("another JSON file", ValueError, "checkpoint.json: truncated, or not a checkpoint"),
        ("another format", ValueError, "checkpoint.json: found format 99, expected 1"),
    ],
)
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path, how, error, message):
    checkpoint.save(tmp_path, arrays(), FACTS)
    source = checkpoint.save(tmp_path, arrays(1), FACTS)
    damage(source, how)
    live = {name: np.zeros_like(array) for name, array in arrays().items()}
    for load in (checkpoint.load, lambda path: checkpoint.load_into(path, live)):
        with pytest.raises(error, match=message) as refusal:
            load(tmp_path)
        if "missing" not in how or "tensors" in how:
            assert checkpoint.PREVIOUS in str(refusal.value) or how == "another format"
    assert not any(np.count_nonzero(array) for array in live.values())
    assert same(checkpoint.load(tmp_path / checkpoint.PREVIOUS)[0], arrays())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": np.zeros((51, 8), np.float32)}, r"found 'table' F32 \(50, 8\), expected 'table' F32 \(51, 8\)"),
        ({"table": np.zeros((50, 8))}, r"found 'table' F32 \(50, 8\), expected 'table' F64 \(50, 8\)"),
        ({"bias": np.zeros(3)}, r"found no 'bias', expected 'bias' F64 \(3,\)"),
        ({"table": None}, r"found 'table' F32 \(50, 8\), expected no 'table'"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path, change, message):
    checkpoint.save(tmp_path, arrays(), FACTS)
    live = {name: np.zeros_like(array) for name, array in arrays().items()} | change
    live = {name: array for name, array in live.items() if array is not None}
    with pytest.raises(ValueError, match=f"a checkpoint of another model: {message}"):
        checkpoint.load_into(tmp_path, live)
    assert not any(np.count_nonzero(array) for array in live.values())


def test_tables_exist_once_in_memory(tmp_path):
    """Peak memory of a process that saves and loads a table of 400 MB, above what it needs to hold that table."""
    script = f"""
import resource
import numpy as np
from hybrid.storage import checkpoint
arrays = {{"table": np.ones((100, 2**20), np.float32), "small": np.ones(1000, np.int64)}}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
checkpoint.save({str(tmp_path)!r}, arrays, {{}})
arrays["table"][:] = 0
checkpoint.load_into({str(tmp_path)!r}, arrays)
assert arrays["table"].min() == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(grown) < 50_000  # kilobytes
