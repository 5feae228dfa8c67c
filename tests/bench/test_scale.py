"""What is predicted is called so, in every table, line and picture; errors and the bar are told as they are."""

import json
import os

import numpy as np
import pytest

from bench import scale, scale_figures
from bench.__main__ import main
from bench.scale_model import Prediction
from bench.scale_picture import draw
from bench.scale_simulation import FOREVER, Link

POINTS = [{"weights": weights, "samples": [weights * 1e-9]} for weights in (1_000, 1_000_000)]
FRAME = {"weights": 0, "samples": [1e-5]}
PVM = {
    "model": "mesh1m",
    "curves": {"1": [*POINTS, FRAME], "2": [*POINTS, FRAME]},
    "ticks": {"1": [0.002], "2": [0.001]},
}
WEIGHTS = scale.graph(scale.configuration("mesh1m")).weights.sum()
PVM["units"] = {
    "1": [2e-9 * WEIGHTS],
    "2": [3e-9 * WEIGHTS / 2],
}  # within a tick twice and three times what they take alone
STAGES = [
    {
        "batch": 64,
        **dict.fromkeys(("wall", "gather", "forward", "readout", "backward", "update", "scatter", "rest"), 0.01),
    }
]
LANGUAGE = {
    "batch": 64,
    "stages": {"1": STAGES, "2": STAGES},
    "ticks": {"1": [0.2]},
}
FOUND = {"overhead": {"1": [1e-5], "2": [1e-5]}, "pvm": [PVM], "language": LANGUAGE}


def test_errors_are_of_all_that_was_measured():
    rows = scale.errors(FOUND, {2: Link()}, cores=1)
    assert [(model, ranks) for model, ranks, *_ in rows] == [("mesh1m", 1), ("mesh1m", 2), ("language model", 1)]
    (_, _, measured, one), (_, _, _, two), (_, _, step, predicted) = rows
    assert measured == 0.002 and one == pytest.approx(2e-9 * WEIGHTS + 2e-5)
    assert two == pytest.approx(3e-9 * WEIGHTS + 4e-5), "two ranks on a core, each with half of the units"
    assert step == 0.2 and predicted == pytest.approx(0.22), "four micro-batches of 16, which take no less than 64"


@pytest.mark.parametrize(("predicted", "said"), [(1.09, "9.0%; bar 10%: met"), (0.88, "12.0%; bar 10%: missed")])
def test_the_largest_error_meets_the_bar_or_not(predicted, said):
    table = scale.error_table([("a", 1, 1.0, 1.0), ("a", 2, 1.0, predicted)])
    assert said in table and "| a | 1 | 1000.000 | 1000.000 | +0.0% |" in table


def test_predictions_are_of_each_model_over_each_link():
    found = scale.predictions(FOUND, Link(1e-6, 1e-6, 1e-10), (2, 8))
    assert len(found) == 3 * 3 and {where for _, where in found} == {scale.HERE, *scale.ASSUMED}
    rows = found["mesh1m", scale.HERE]
    assert [one.ranks for one in rows] == [2, 8] and all(0 < one.efficiency <= 1 for one in rows)
    assert [one.ranks for one in scale.predictions(FOUND, Link(), (2, 64))["mesh1m", scale.HERE]] == [2], "of 36 units"
    weak = found["language model, batch x ranks", scale.HERE][1]
    assert weak.efficiency == pytest.approx(weak.speedup / 8)


def test_every_line_of_a_prediction_says_so(tmp_path):
    rows = {"m": [Prediction(8, 0.001, 6.0, 0.75, "latency")]}
    table = scale.predicted_table(scale.HERE, rows)
    assert table.startswith("Predicted, not measured;")
    assert table.splitlines()[2].count("predicted") == 4
    assert table.splitlines()[-1] == "| m | 8 | 1.000 | 6.0 x | 75% | latency |"
    assert scale._predicted("m", scale.HERE, rows["m"][0])["predicted"] is True
    draw(tmp_path / "of" / "scale.png", {("m", scale.HERE): rows["m"]})
    assert (tmp_path / "of" / "scale.png").stat().st_size > 5_000


def test_links_say_what_moves_beside_compute():
    table = scale.link_table({2: Link(1e-6, 2e-6, 1e-10, 2048), 4: Link(1e-6, 2e-6, 0.0, FOREVER)})
    assert table.splitlines()[-2:] == ["| 2 | 1.00 | 2.0 | 10.0 | up to 2,048 bytes |", "| 4 | 1.00 | 2.0 | - | all |"]


def test_the_command_measures_and_predicts(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(scale_figures, "RANKS", (1, 2))  # of 4 there are more processes, and nothing else
    kept = tmp_path / "scale.jsonl"
    assert (
        main(
            [
                "scale",
                "--quick",
                "--repeat",
                "2",
                "--threads",
                os.environ["NUMBA_NUM_THREADS"],
                "--json",
                str(kept),
                "--out",
                str(tmp_path),
            ]
        )
        == 0
    )
    measured, *others = [json.loads(line) for line in kept.read_text().splitlines()]
    predicted = [one for one in others if one["work"] == "scale.predicted"]
    checked = [one for one in others if one["work"] == "scale.checked"]
    assert len(checked) == 4 and all(min(one["measured"], one["simulated"]) > 0 for one in checked)
    assert set(measured["halos"]) == {"2"} and set(measured["pvm"][0]["ticks"]) == {"1", "2"}
    assert set(measured["language"]["ticks"]) == {"1", "2"}
    assert all(np.min(samples) > 0 for samples in measured["pvm"][0]["ticks"].values())
    assert len(predicted) == 3 * 3 * 2 and all(one["predicted"] for one in predicted)
    printed = capsys.readouterr().out
    assert "bar 10%" in printed and "24.7 x" in printed and "relatively straightforward" in printed
    assert (tmp_path / scale.PICTURE).exists()
