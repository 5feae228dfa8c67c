"""The section of unit collections, of records made by hand."""

import pytest

from bench.sections.collections import HEADER, STEP, section


def record(who, value, batch=1, momentum=0.0, work=STEP, units=14_161, **more):
    params = {"units": units, "batch": batch, "momentum": momentum}
    shares = {"bytes_least": 16 if momentum else 8, "bytes_spent": 40e9 / value, "bandwidth_share": 8 * value / 40e9}
    found = {
        "work": work,
        "who": who,
        "params": params,
        "value": value,
        "interval": [value * 0.9, value * 1.1],
        "threads": 2,
    }
    return found | shares | {"parameters": units * 14_899} | more


RECORDS = [
    record("ours", 4e9, left_out=["jax vmap at 1,000,005,981 parameters: 20.0 GiB needed, 8.0 GiB free"]),
    record("torch 2 bmm", 1e9),
    record("torch 2 autograd", 5e8),
    record("ours", 2e9, batch=8),
    record("ours", 3e9, units=671),
]


def test_every_record_is_a_row_and_the_seed_stands_below():
    (collections,) = section(RECORDS).tables
    assert len(collections.rows) == 6
    assert all(len(row) == len(HEADER) for row in collections.rows)
    first = dict(zip(HEADER, collections.rows[0], strict=True))
    assert first["parameters"] == 210_984_739 and first["bytes spent"] == 10 and first["share of bandwidth"] == 0.8
    seed = dict(zip(HEADER, collections.rows[-1], strict=True))
    assert seed["parameters/s"] == pytest.approx(4.43e9, rel=1e-3) and seed["source"] == "published"


def test_ours_is_compared_with_the_fastest_of_the_same_case():
    found = section(RECORDS)
    assert "ours 4 G parameters/s, 80% of the bandwidth; 4.00 times torch 2 bmm" in found.answer[1]
    assert found.gaps == ["jax vmap at 1,000,005,981 parameters: 20.0 GiB needed, 8.0 GiB free"]


def test_figures_have_the_points_of_their_cases():
    altair = pytest.importorskip("altair")
    by_size, by_batch = section(RECORDS).figures
    for figure in (by_size, by_batch):
        assert isinstance(figure.chart, altair.Chart | altair.LayerChart) and figure.chart.to_dict()
    points = list(drawn(by_size.chart.to_dict()))
    assert {point["parameters"] for point in points if "parameters" in point} == {210_984_739, 671 * 14_899}
    assert 21 * 210_984_739 in [point["rate"] for point in points if "parameters" not in point]
    assert [point["batch"] for point in drawn(by_batch.chart.to_dict())] == [1, 1, 1, 8]


def drawn(chart):
    """All points, of whatever layer."""
    yield from chart.get("data", {}).get("values", ())
    for layer in chart.get("layer", ()):
        yield from drawn(layer)


def test_without_records_it_says_what_is_missing():
    assert section([]).gaps == ["No collection of units has been measured."]
