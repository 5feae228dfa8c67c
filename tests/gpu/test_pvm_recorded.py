"""A model on the device against a recording of the NumPy twin of the original Predictive Vision Model."""

import numpy as np

from tests import golden
from tests.twins import recordings


def test_the_numbers_of_the_twin_on_the_device(gpu, cuda, tmp_path):
    """Activations, weights and velocities after each frame."""
    np.savez(tmp_path / "C.npz", **recordings.record("C", 3, np.float32))
    rows, missed = golden.replay(tmp_path / "C.npz", device=cuda)
    assert [str(row) for row in rows if row.fails] == missed == []
    assert {"t_input", "t_hidden", "t_output", "w_after", "dw_after", "readout_w1_after"} <= {row.name for row in rows}
