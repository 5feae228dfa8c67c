"""Recordings of the original implementations, and of their NumPy twins, replayed: the numbers are theirs.

`python -m tests.golden FILE` replays any other recording.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import golden
from tests.twins import recordings

FOLDER = Path(os.environ.get("HYBRID_GOLDEN") or Path(__file__).parents[2] / "shared" / "golden")
PEERS = ("A_poly4_float64.npz", "A_poly4_float32.npz", "E_classic_1step.npz")
CUDA = {"t_input", "t_hidden", "t_output", "t_pred_frame", "dw_after"}
CUDA |= {"t_heatmap", "t_mean_abs_error", "t_frame_raw", "t_lr", "t_mom", "t_readout_trained", "w_after", "dw_after"}
CUDA |= {"readout_w0_after", "readout_w1_after", "primary_src", "context_src", "xs", "ys", "unit_input_dim"}
CLASSIC = {"t_predicted_0", "t_predicted_2", "t_state_0", "t_state_2", "t_heatmap_0", "t_heatmap_2", "t_mean_abs_error"}
CLASSIC |= {"w_after", "readout_after", "signal_src", "context_src", "context_is_feedback", "w_shapes", "r_shapes"}


@pytest.fixture(scope="module")
def twin(tmp_path_factory):
    """Recordings by name, made once."""
    folder, made = tmp_path_factory.mktemp("twins"), {}

    def get(name, dtype=np.float64):
        if (name, dtype) not in made:
            made[name, dtype] = folder / f"{name}_{np.dtype(dtype)}.npz"
            np.savez(made[name, dtype], **recordings.record(name, 3, dtype))
        return made[name, dtype]

    return get


def agrees(path):
    rows, missed = golden.replay(path)
    assert [str(row) for row in rows if row.fails] == []
    assert missed == []
    names = {row.name for row in rows}
    assert names >= (CLASSIC if "t_state_0" in names else CUDA)


@pytest.mark.parametrize("name", PEERS)
def test_ours_is_the_original(name):
    if not (FOLDER / name).is_file():
        pytest.skip(f"no {name} in {FOLDER}; HYBRID_GOLDEN names the folder")
    agrees(FOLDER / name)


@pytest.mark.parametrize("name", "BCDFG")
def test_ours_is_the_twin(twin, name):
    agrees(twin(name))


def test_ours_is_the_twin_in_float32(twin):
    agrees(twin("C", np.float32))


def command(monkeypatch, capsys, *arguments):
    """Exit code and what was printed."""
    monkeypatch.setattr(sys, "argv", ["golden", *map(str, arguments)])
    return golden.main(), capsys.readouterr()


def planted(path, target, name, change):
    """The recording with one array changed."""
    with np.load(path) as arrays:
        found = dict(arrays)
    found[name] = change(found[name].copy())
    np.savez(target, **found)
    return target


def larger(array):
    array.reshape(-1)[array.size // 2] += 1e-9
    return array


def first_larger(array):
    array[30, 0] += 1e-9  # of the first unit, so it is no byte that means nothing
    return array


def swapped(array):
    array[[0, 1]] = array[[1, 0]]
    return array


@pytest.mark.parametrize(
    "model, name, change",
    [
        ("B", "w_after", larger),
        ("B", "t_hidden", first_larger),
        ("B", "context_src", swapped),
        ("F", "t_state_1", larger),
    ],
)
def test_a_planted_change_is_found(twin, tmp_path, monkeypatch, capsys, model, name, change):
    code, printed = command(monkeypatch, capsys, planted(twin(model), tmp_path / "planted.npz", name, change))
    assert code == 1
    assert f"not {name}" in printed.out


def test_the_command_prints_each_array(twin, monkeypatch, capsys):
    code, printed = command(monkeypatch, capsys, twin("B"))
    assert code == 0
    assert "arrays agree" in printed.out
    assert any(line.split()[0] == "t_hidden" and line.endswith("ok") for line in printed.out.splitlines())


def test_arrays_that_nobody_knows_are_named_and_missing_ones_left_out(twin, tmp_path):
    with np.load(twin("B")) as arrays:
        found = {name: array for name, array in arrays.items() if name not in ("t_heatmap", "xs", "t_mom", "t_step")}
    np.savez(tmp_path / "other.npz", **found, t_weather=np.zeros(3))
    rows, missed = golden.replay(tmp_path / "other.npz")
    assert not any(row.fails for row in rows)
    assert missed == ["xs_off", "t_weather"]


@pytest.mark.parametrize("content", [b"PK\x03\x04 cut", None])
def test_what_is_no_recording_is_refused(tmp_path, monkeypatch, capsys, content):
    path = tmp_path / "other.npz"
    if content is None:
        np.savez(path, config_json="{}", weights_init=np.zeros(3))
    else:
        path.write_bytes(content)
    code, printed = command(monkeypatch, capsys, path)
    assert code == 2
    assert str(path) in printed.err
    assert "a recording" in printed.err
