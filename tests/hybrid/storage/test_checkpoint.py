"""What is loaded is what was saved, bit for bit; what is damaged, or of another model, is refused by name."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from hybrid.storage import checkpoint
from tests.support.saved_arrays import FACTS, arrays, content, same, tensor_file


def test_what_was_saved_comes_back_and_equal_runs_write_equal_bytes(tmp_path):
    source = checkpoint.save(tmp_path / "new" / "run", arrays(), FACTS)
    for path in (source, source.parent, str(source.parent)):
        loaded, facts = checkpoint.load(path)
        assert same(loaded, arrays())
        assert facts == FACTS
    assert checkpoint.read_facts(source.parent) == FACTS
    checkpoint.save(tmp_path / "again", arrays(), FACTS)
    assert content(tmp_path / "again") == content(source.parent)


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


def test_a_second_checkpoint_of_a_run_stands_for_itself(tmp_path):
    """Such as the best one: it is read by its own folder, and a damaged one sends nobody to the run's."""
    with pytest.raises(FileNotFoundError, match=r"checkpoint.json: no such checkpoint"):
        checkpoint.load(tmp_path)
    checkpoint.save(tmp_path / checkpoint.CHECKPOINT, arrays(2), {"tick": 2})
    for tick in range(2):
        source = checkpoint.save(tmp_path / "best", arrays(tick), {"tick": tick})
    assert same(checkpoint.load(tmp_path / "best")[0], arrays(1))
    assert checkpoint.read_facts(tmp_path) == {"tick": 2} and same(checkpoint.load(tmp_path)[0], arrays(2))
    damage(source, "facts truncated")
    with pytest.raises(ValueError, match=r"best/checkpoint\.json: truncated.*checkpoint\.previous\.json: load that$"):
        checkpoint.load(tmp_path / "best")
    previous = source.with_name("checkpoint.previous.json")
    damage(previous, "facts truncated")
    with pytest.raises(ValueError, match=r"previous\.json: truncated, or not a checkpoint$"):
        checkpoint.load(previous)
    previous.unlink()
    with pytest.raises(ValueError, match=r"checkpoint\.json: truncated, or not a checkpoint$"):
        checkpoint.load(tmp_path / "best")


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
    with pytest.raises(ValueError, match=r"run: describes no model .*rows"), checkpoint.rebuilding("run"):
        raise failure


DEEP: list = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize("facts", [{"loss": float("nan")}, {"when": object()}, {"table": np.ones(2)}, {"deep": DEEP}])
def test_facts_that_json_cannot_say_are_refused(tmp_path, facts):
    with pytest.raises(ValueError, match="facts: expected values that JSON has"):
        checkpoint.save(tmp_path, arrays(), facts)
    assert content(tmp_path) == {}


def facts_become(old: str, new: str):
    return lambda source, _: source.write_text(re.sub(old, new, source.read_text(), flags=re.DOTALL))


def tensors_become(change):
    return lambda _, raw: raw.write_bytes(change(raw.read_bytes()))


WHOLE = r"tensors-\w+.safetensors: "
NONE = "checkpoint.json: truncated, or not a checkpoint"
DAMAGE = {
    "tensors truncated": (tensors_become(lambda raw: raw[:-1]), WHOLE + r"truncated: found \d+ bytes, exp"),
    "tensors longer": (tensors_become(lambda raw: raw + b"\0"), WHOLE + r"truncated: found \d+ bytes, exp"),
    "tensors altered": (tensors_become(lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])), WHOLE + "altered since it was"),
    "tensors missing": (lambda _, raw: raw.unlink(), WHOLE + "missing, and .*checkpoint.json needs it"),
    "facts truncated": (facts_become(".{10}$", ""), NONE),
    "facts altered": (facts_become('"tick": 7', '"tick": 8'), "checkpoint.json: altered since it was saved"),
    "facts empty": (facts_become(".*", ""), NONE),
    "facts missing": (lambda source, _: source.unlink(), "checkpoint.json: no such checkpoint"),
    "another JSON file": (facts_become(".*", "[1]"), NONE),
    "another format": (facts_become('"format": 1', '"format": 99'), "checkpoint.json: found format 99, expected 1"),
}


def damage(source: Path, how: str) -> None:
    """Spoil a checkpoint in one way."""
    DAMAGE[how][0](source, tensor_file(source))


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_checkpoint_is_refused_by_name(tmp_path, how):
    checkpoint.save(tmp_path, arrays(), FACTS)
    source = checkpoint.save(tmp_path, arrays(1), FACTS)
    damage(source, how)
    live = {name: np.zeros_like(array) for name, array in arrays().items()}
    for load in (checkpoint.load, lambda path: checkpoint.load_into(path, live)):
        with pytest.raises(FileNotFoundError if "missing" in how else ValueError, match=DAMAGE[how][1]) as refusal:
            load(tmp_path)
        assert checkpoint.PREVIOUS in str(refusal.value) or how in ("facts missing", "another format")
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


@pytest.mark.parametrize("name", [checkpoint.LATEST, checkpoint.PREVIOUS])
def test_a_pipe_in_place_of_a_save_is_refused(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=f"{name}: found no regular file"):
        checkpoint.save(tmp_path, arrays(), FACTS)
