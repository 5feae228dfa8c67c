"""hybrid/sweep/picture.py: the points that are drawn."""

import numpy as np
from matplotlib.figure import Figure

from hybrid.sweep import picture
from hybrid.sweep.records import Record
from hybrid.sweep.space import Choice, Range

SPACE = {
    "rate": Range(0.01, 1.0, log=True),
    "readout": Choice(("tree", "full")),
    "width": Choice((4, 8)),
    "a": Choice((1,)),
}
RECORDS = [
    Record(2, 3, {"rate": 0.1, "readout": "full", "width": 8, "a": 1}, value=2.0),
    Record(2, 1, {"rate": 0.1, "readout": "full", "width": 8, "a": 1}, value=4.0),
    Record(1, 1, {"rate": 0.5, "readout": "tree", "width": 4, "a": 1}, value=5.0),
    Record(3, 1, {"rate": 0.9, "readout": "tree", "width": 4, "a": 1}, cause="it diverged"),
]


def points(axis):
    return {found.get_label(): np.asarray(found.get_offsets()).tolist() for found in axis.collections}


def test_each_panel_has_every_trial_that_has_a_figure():
    drawn = Figure()
    picture.fill(drawn, RECORDS, SPACE, "perplexity", "epochs")
    rate, readout, width, last = drawn.axes
    assert points(rate) == {"1 epochs": [[0.1, 4], [0.5, 5]], "3 epochs": [[0.1, 2]], "best": [[0.1, 2]]}
    assert points(readout) == {"1 epochs": [[1, 4], [0, 5]], "3 epochs": [[1, 2]], "best": [[1, 2]]}
    assert points(width)["1 epochs"] == [[8, 4], [4, 5]]
    assert rate.get_xscale() == "log" and width.get_xscale() == "linear"
    assert [tick.get_text() for tick in readout.get_xticklabels()] == ["tree", "full"]
    assert readout.get_xlim() == (-0.5, 1.5) and rate.get_xlim() == (0.01 / 1.2, 1.2)  # points stand off the frame
    assert [axis.get_ylabel() for axis in drawn.axes] == ["perplexity", "", "", "perplexity"]
    assert last.get_xlabel() == "a"


def test_trials_of_one_rung_have_one_colour_and_no_legend():
    drawn = Figure()
    picture.fill(drawn, [one._replace(length=None) for one in RECORDS], SPACE, "perplexity", "epochs")
    trials, best = drawn.axes[0].collections
    assert (len(trials.get_offsets()), len(best.get_offsets()), drawn.legends) == (3, 1, [])


def test_it_is_written(tmp_path):
    picture.draw(tmp_path / "sweep.png", RECORDS, SPACE, "perplexity", "epochs")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "sweep.pdf").read_bytes().startswith(b"%PDF")
