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
CUDA = {"t_input", "t_hidden", "t_output", "t_pred_frame"}
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


def test_a_planted_change_is_found(twin, tmp_path, monkeypatch, capsys):
    with np.load(twin("B")) as arrays:
        found = dict(arrays)
    found["w_after"].reshape(-1)[found["w_after"].size // 2] += 1e-9
    np.savez(tmp_path / "planted.npz", **found)
    code, printed = command(monkeypatch, capsys, tmp_path / "planted.npz")
    assert code == 1
    assert "not w_after" in printed.out and "not t_hidden" not in printed.out


def test_what_is_no_recording_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "other.npz"
    np.savez(path, config_json="{}", weights_init=np.zeros(3))
    code, printed = command(monkeypatch, capsys, path)
    assert code == 2
    assert str(path) in printed.err
    assert "a recording" in printed.err
