"""A tick of a Predictive Vision Model on the CPU, and cpu/pvm.py, which visits its matrices."""

import itertools

import numba
import numpy as np
import pytest

from bench.oracles.pvm import WRITTEN, expected
from cpu import pvm
from tests.support.pvm_tick import KINDS, PLAIN, UNITS, assert_close, case, tick


@pytest.mark.parametrize(("kind", "streams"), [*zip(KINDS, itertools.cycle([1, 3]))])
def test_a_tick_is_what_the_contract_says(kind, streams):
    made = case(kind, streams)
    assert_close(tick(made), expected(made))


@pytest.mark.parametrize(("kind", "streams"), [("simple, newest first", 1), ("residual", 2)])
def test_without_momentum_and_without_a_range(kind, streams):
    made = case(kind, streams) | PLAIN
    assert_close(tick(made), expected(made))


@pytest.mark.parametrize(("kind", "streams"), [("simple, context twice", 1), ("complex residual", 2)])
def test_any_number_of_threads_and_any_ranges_of_units_write_the_same_bytes(kind, streams, threads):
    made = case(kind, streams)
    whole = tick(made)
    numba.set_num_threads(1)
    alone = tick(made)
    assert all(alone[name].tobytes() == whole[name].tobytes() for name in WRITTEN)
    numba.set_num_threads(threads)
    for cut in range(1, len(UNITS)):
        parts = tick(made | {"units": (0, cut)})
        untouched = whole["layout"].published_at[cut]
        assert np.array_equal(parts["world_next"][:, untouched:], made["world_next"][:, untouched:])
        parts = tick(parts | {"units": (cut, len(UNITS))})
        for name in WRITTEN:
            assert parts[name].tobytes() == whole[name].tobytes(), (name, cut)


def test_who_does_not_learn_keeps_every_bit():
    made = case("simple, newest first", 2)
    made["learns"][:] = 0, 1, 0, 1, 0
    made["velocity"][3] = -0.0
    found, layout = tick(made), made["layout"]
    ends = np.append(layout.w_at, made["weights"].size)
    for u, learns in enumerate(made["learns"]):
        part = slice(ends[layout.layer_at[u]], ends[layout.layer_at[u + 1]])
        for name in ("weights", "velocity"):
            assert (found[name][part].tobytes() == made[name][part].tobytes()) == (not learns)
    assert_close(found, expected(made))
    whole = tick(made | {"learns": np.ones(5, np.uint8)})
    part = slice(0, ends[layout.layer_at[1]])
    assert np.array_equal(found["tape"][:, : layout.tape_at[1]], whole["tape"][:, : layout.tape_at[1]])
    assert not np.array_equal(found["weights"][part], whole["weights"][part])


@pytest.mark.parametrize("kind", ["simple, newest first", "simple, context twice", "complex", "complex, context later"])
def test_the_gradient_is_the_slope_by_difference(kind):
    """Of half the squared error of one unit, whose prediction is made of nothing but its weights and what it saw."""
    made = case(kind)
    made |= {"learns": np.zeros(5, np.uint8), "rate": np.ones(5), "momentum": np.zeros(5)}
    after = {"world": made["world"][:, ::-1].copy()}
    layout, u = made["layout"], 3

    def prediction(weights):
        return tick(made | {"weights": weights})

    seen = prediction(made["weights"])
    shown = made | after | {"record": seen["tape"], "before": seen["signals"], "last": seen["tape"]}
    taught = tick(shown | {"learns": np.ones(5, np.uint8)})
    now, past = (one["signals"][0, layout.signal_at[u] : layout.signal_at[u + 1]] for one in (taught, seen))
    target = np.concatenate([now] if layout.steps == 1 else [now, past] if layout.newest_first else [past, now])

    def loss(weights):
        guess = prediction(weights)["tape"][0, layout.predicted_at[u] :][: target.size]
        return ((target - guess) ** 2).sum() / 2

    begin = layout.w_at[layout.layer_at[u]]
    end = np.append(layout.w_at, made["weights"].size)[layout.layer_at[u + 1]]
    for place in np.random.default_rng(1).integers(begin, end, 40):
        nudge = np.zeros_like(made["weights"])
        nudge[place] = 1e-6
        slope = (loss(made["weights"] + nudge) - loss(made["weights"] - nudge)) / 2e-6
        assert taught["weights"][place] - made["weights"][place] == pytest.approx(-slope, rel=1e-6, abs=1e-9)


def test_collect_gathers_along_the_second_axis_and_spread_is_the_other_way():
    source, out = np.arange(10.0).reshape(2, 5), np.empty((2, 3))
    pvm.collect(out, source, np.array([4, 0, 4], np.int32))
    assert out.tolist() == [[4, 0, 4], [9, 5, 9]]
    out = np.full((2, 5), -1.0)
    pvm.spread(out, np.arange(4.0).reshape(2, 2), np.array([3, 1], np.int32))
    assert out.tolist() == [[-1, 1, -1, 0, -1], [-1, 3, -1, 2, -1]]
