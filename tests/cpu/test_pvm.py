"""A tick of a Predictive Vision Model on the CPU, and cpu/visit.py, which visits its matrices."""

import itertools

import numba
import numpy as np
import pytest

from cpu import pvm
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm import initial
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.originals import config as original
from hybrid.pvm.rules import wire
from tests.golden import beside_layer_0
from tests.support.pvm_tick import KINDS, UNITS, WRITTEN, assert_close, by_hand, case, tick
from tests.twins.configurations import E
from tests.twins.pvm_classic import ClassicModel


@pytest.mark.parametrize(("kind", "streams"), zip(KINDS, itertools.cycle([1, 3])))
def test_a_tick_is_what_the_contract_says(kind, streams):
    made = case(kind, streams)
    assert_close(tick(made), by_hand(made))


@pytest.mark.parametrize(("kind", "streams"), [("simple, newest first", 1), ("residual", 2)])
def test_without_momentum_and_without_a_range(kind, streams):
    made = case(kind, streams, plain=True)
    assert_close(tick(made), by_hand(made))


@pytest.mark.parametrize(("kind", "streams"), [("simple, newest first", 2), ("complex", 1)])
def test_predicting_first_and_last(kind, streams):
    made = case(kind, streams)
    first, last = (tick(made | {"predict_first": which}) for which in (True, False))
    assert_close(first, by_hand(made | {"predict_first": True}))
    assert_close(last, by_hand(made | {"predict_first": False}))
    assert np.array_equal(first["weights"], last["weights"])
    assert not np.allclose(first["tape"], last["tape"], atol=1e-6)


def test_many_streams_are_the_sum_of_single_ones():
    made = case("all features, two steps", 3)
    made["velocity"][:] = 0
    together = tick(made)
    moved = np.zeros_like(made["weights"])
    for b in range(3):
        own = {name: value[b : b + 1] for name, value in made.items() if getattr(value, "ndim", 0) == 2}
        alone = tick(made | own)
        moved += alone["weights"] - made["weights"]
        assert np.array_equal(alone["signals"][0], together["signals"][b])
    np.testing.assert_allclose(together["weights"], made["weights"] + moved, rtol=0, atol=1e-12)


BYTES: dict = {}


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
    assert_close(found, by_hand(made))
    whole = tick(made | {"learns": np.ones(5, np.uint8)})
    part = slice(0, ends[layout.layer_at[1]])
    assert np.array_equal(found["tape"][:, : layout.tape_at[1]], whole["tape"][:, : layout.tape_at[1]])
    assert not np.array_equal(found["weights"][part], whole["weights"][part])


def test_the_wrong_slope_is_half_in_the_middle_and_two_ninths_at_the_ends():
    made = case("simple, newest first") | {"activation": "rational2023"}
    made["record"][:] = 1
    layout, found = made["layout"], tick(made)
    for u, (at, size) in enumerate(zip(layout.predicted_at, layout.rows[1::2], strict=True)):
        target = [
            array[0, layout.signal_at[u] : layout.signal_at[u + 1]] for array in (found["signals"], made["before"])
        ]
        expected = 2 / 9 * (np.concatenate(target) - 1)
        np.testing.assert_allclose(found["delta"][0, at : at + size], expected, rtol=0, atol=1e-15)
    made["record"][:] = 0.5
    found, size = tick(made), layout.rows[1]
    first = np.concatenate([array[0, : size // 2] for array in (found["signals"], made["before"])])
    np.testing.assert_allclose(
        found["delta"][0, layout.predicted_at[0] :][:size], (first - 0.5) / 2, rtol=0, atol=1e-15
    )


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
    now, past = (
        array[0, layout.signal_at[u] : layout.signal_at[u + 1]] for array in (taught["signals"], seen["signals"])
    )
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


# -------------------------------------------------------------------------------------------------------- the twins

OPTIONS = E | {"layer_shapes": ["3", "2", "1"], "hidden_block_size": "2", "readout_block_size": ["1"] * 3}
OPTIONS |= {"enable_readout": ["1"] * 3, "normalize_output": "1"}
RESIDUAL = {"ex_module": "PVM_models.PVM_unit_2step_residual_v1", "predict_two_steps": "1"}
RATE, MOMENTUM, TICKS = 0.05, 0.5, 12
TWINS = {
    "simple": {},
    "complex": {"unit_type": "complex"},
    "complex, context later": {"unit_type": "complex", "feed_context_in_complex_layer": "1"},
    "residual": RESIDUAL,
    "complex_residual": RESIDUAL | {"unit_type": "complex"},
}


def weights_of(twin, layout, kind):
    """The twin's matrices in the order and the form of ours."""
    parts = []
    for u, one in enumerate(twin.units):
        nets = [net.matrices for net in one.nets]
        ours = nets[0]
        if "residual" in kind:
            (*a, a_last), (b, *b_rest, b_last) = nets
            features = one.features_dim
            ours = [*a, np.concatenate([b[features:-1], b[:features], b[-1:]]), *b_rest, a_last, b_last]
        shapes = [(layout.columns[k] + 1, layout.rows[k]) for k in range(layout.layer_at[u], layout.layer_at[u + 1])]
        assert [part.shape for part in ours] == shapes
        parts += [part for matrix in ours for part in (matrix[:-1].T.ravel(), matrix[-1])]
    return np.concatenate(parts)


@pytest.mark.parametrize("kind", TWINS)
def test_all_kinds_are_the_twins(kind):
    options = OPTIONS | TWINS[kind]
    name = kind.partition(",")[0]
    twin = ClassicModel(options, name)
    rng = np.random.default_rng(5)
    twin.initialise(rng)
    config, _ = original.read(options, wiring="classic")
    config = Config(**{**vars(config), "schedule": ((0, None, RATE, MOMENTUM),), "readout": None})
    wiring = beside_layer_0(wire(config))
    layout = tape_layout(wiring, config)
    weights, units = weights_of(twin, layout, name), len(wiring.hidden)
    state = initial.state(layout, config, wiring.layer, weights, 1)
    velocity, delta, miss = np.zeros_like(weights), np.zeros((1, int(layout.tape_at[-1]))), np.zeros(units)
    steps, some = layout.steps, np.ones(units, np.uint8)
    for t in range(TICKS):
        tape, before = state[f"tape_{(t - 1) % (steps + 1)}"], state[f"world_{t % 2}"]
        pixels = rng.integers(0, 256, wiring.frame).astype(np.uint8)
        factors = float(t >= 2), float(t >= 4)
        twin.frame(pixels, None, [RATE] * 3, 0.0, *factors)
        for u, one in enumerate(twin.units):
            seen = tape[0, layout.predicted_at[u] :][: one.outputs].copy()
            if name in ("residual", "complex_residual"):
                seen = (seen + 2 * tape[0, layout.residual_at[u] :][: one.outputs] - 1).clip(0, 1)
            np.testing.assert_allclose(seen, one.prediction, rtol=0, atol=1e-12)
            published = before[0, layout.published_at[u] :][: one.h]
            np.testing.assert_allclose(published, one.published, rtol=0, atol=1e-12)
        before[0, : pixels.size] = pixels.ravel() / 255
        written = state[f"world_{(t + 1) % 2}"], state[f"tape_{t % (steps + 1)}"], state[f"signals_{t % 2}"]
        scaled = state.get("low"), state.get("high")
        now = State(*written, state["integral"], delta, *scaled, miss, weights, velocity)
        past = Past(before, tape, state[f"tape_{(t - steps) % (steps + 1)}"], state[f"signals_{(t - 1) % 2}"])
        learning = Learning(np.full(units, RATE), np.full(units, MOMENTUM), some * (t >= steps - 1), some, False)
        pvm.tick(now, layout, past, learning, Gathering(1.0, 0.0, config.tau, *factors), "rational", 0, units)
        np.testing.assert_allclose(weights, weights_of(twin, layout, name), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "dtype"), [("bytes", np.float32), ("numbers", np.float64)])
def test_show_scales_a_frame_into_the_front_of_each_world(kind, dtype):
    frame = np.array([[0, 1, 255], [2, 128, 254]], np.uint8 if kind == "bytes" else dtype)
    world = np.full((2, 5), 7, dtype)
    pvm.show(world, frame, 1 / 255)
    assert np.array_equal(world[:, :3], frame.astype(dtype) * dtype(1 / 255))
    assert np.all(world[:, 3:] == 7)


def test_collect_gathers_along_the_second_axis_and_spread_is_the_other_way():
    source, out = np.arange(10.0).reshape(2, 5), np.empty((2, 3))
    pvm.collect(out, source, np.array([4, 0, 4], np.int32))
    assert out.tolist() == [[4, 0, 4], [9, 5, 9]]
    out = np.full((2, 5), -1.0)
    pvm.spread(out, np.arange(4.0).reshape(2, 2), np.array([3, 1], np.int32))
    assert out.tolist() == [[-1, 1, -1, 0, -1], [-1, 3, -1, 2, -1]]
