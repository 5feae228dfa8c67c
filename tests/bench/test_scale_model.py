"""The model finds the figures that made its measurements, and names what bounds a tick."""

import numpy as np
import pytest

from bench.scale_model import balanced, bound, curve, fit, link, predict
from bench.scale_simulation import FOREVER, Compute, Link, Start, Wait, simulate


def halo(size, link, neighbours=2, hidden=1.0):
    """What a ring measures on a link."""
    start = 2 * neighbours * link.overhead
    seconds = start / 2 + link.latency + neighbours * link.a_byte * size
    return {"bytes": size, "neighbours": neighbours, "start": start, "samples": [seconds] * 3, "hidden": hidden}


def pair(shared, interior, size=1.0):
    return [
        [Compute("shared", shared), Start("halo", {1 - rank: size}), Compute("interior", interior), Wait("halo")]
        for rank in range(2)
    ]


def test_a_link_is_found_in_its_halos():
    made = Link(1e-6, 5e-6, 2e-10)
    found = link([halo(size, made) for size in (256, 4096, 65536, 1 << 20)])
    assert found[:3] == pytest.approx(made[:3]) and found.alone == FOREVER


@pytest.mark.parametrize(
    ("hidden", "alone"), [((0.9, 0.8, 0.2), 4096), ((0.1, 0.9, 0.9), 0), ((0.6, 0.6, 0.6), FOREVER)]
)
def test_what_is_not_hidden_waits_for_its_ranks(hidden, alone):
    sizes = (256, 4096, 65536)
    found = link([halo(size, Link(1e-6, 5e-6, 2e-10), hidden=share) for size, share in zip(sizes, hidden, strict=True)])
    assert found.alone == alone


def test_a_ring_of_simulated_ranks_takes_what_was_measured():
    """The fit and the simulation mean the same by a latency."""
    made, size = Link(1e-6, 5e-6, 2e-10), 4096
    ring = [[Start("halo", {(rank + 1) % 4: size, (rank - 1) % 4: size}), Wait("halo")] for rank in range(4)]
    assert simulate(ring, made).seconds == pytest.approx(halo(size, made)["samples"][0], rel=0.1)


@pytest.mark.parametrize(("seconds", "line"), [((3.0, 5.0), (1, 2)), ((1.0, 4.0), (0, None)), ((4.0, 1.0), (None, 0))])
def test_neither_latency_nor_a_byte_is_less_than_nothing(seconds, line):
    found = fit(np.array([1.0, 2.0]), np.array(seconds))
    for one, expected in zip(found, line, strict=True):
        assert one > 0 if expected is None else one == pytest.approx(expected, abs=1e-12)


def test_a_curve_has_its_points_in_order():
    assert curve([(4, 2.0), (1, 1.0)]) == ((1, 4), (1.0, 2.0))


@pytest.mark.parametrize(
    ("programs", "wire", "name"),
    [
        (pair(1, 9), Link(latency=5), "compute"),
        (pair(1, 1), Link(latency=5), "latency"),
        (pair(1, 1, 50), Link(latency=1, a_byte=1), "bandwidth"),
        ([pair(1, 1)[0], pair(1, 9)[1]], Link(), "imbalance"),
    ],
)
def test_what_bounds_a_tick(programs, wire, name):
    assert bound(programs, simulate(programs, wire).seconds, wire) == name


def test_what_all_ranks_repeat_bounds_a_tick():
    uneven = [pair(1, 1)[0], pair(1, 9)[1]]
    assert bound(uneven, simulate(uneven, Link()).seconds, Link(), pair(1, 5)) == "what all ranks repeat"


def test_balance_keeps_all_work():
    even = balanced([pair(1, 2)[0], pair(3, 8)[1]])
    assert [[step.seconds for step in one if isinstance(step, Compute)] for one in even] == [[2, 5], [2, 5]]


def test_predictions_are_over_one_rank():
    """12 seconds of work, and 2 for what is exchanged when there are several."""

    def of(ranks):
        return [
            [Compute("all", 12 / ranks), Start("x", {(rank + 1) % ranks: 1.0} if ranks > 1 else {}), Wait("x")]
            for rank in range(ranks)
        ]

    two, four = predict(of, Link(latency=2), (2, 4))
    assert (two.seconds, two.speedup, two.efficiency, two.bound) == (8, 1.5, 0.75, "latency")
    assert (four.seconds, four.speedup, four.efficiency) == (5, 2.4, 0.6)
    weak = predict(lambda ranks: of(ranks) if ranks == 1 else pair(12, 0), Link(latency=3), (2,), weak=True)
    assert (weak[0].seconds, weak[0].speedup, weak[0].efficiency) == (15, 1.6, 0.8)
