"""A tick of a Predictive Vision Model on the device, against the CPU in float64."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from bench.oracles import pvm as oracle
from cpu import pvm as cpu_pvm
from gpu import pvm
from gpu.runtime.array import Array
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.wiring import Unit, custom, wire
from tests.support.pvm_tick import tick

SMALL = {"grids": (4, 3, 2, 1), "block": 2, "hidden": 9}
CLASSIC = SMALL | {"wiring": "classic", "features": ("signal", "derivative", "integral", "error", "past")}
STILL = {"velocity": None, "momentum": 0.0}
RAW = {"low": None, "high": None}


def hierarchy(**options):
    config = Config(**(SMALL | options))
    return tape_layout(wire(config), config)


def graph(**options):
    """Units of all sizes: narrower and wider than a warp, hundreds of inputs, a loop, a source twice, no context."""
    units = (
        Unit(0, 65, (0, 0, 13, 7), context=(1, 3, 4)),
        Unit(0, 1, (5, 7, 1, 1)),
        Unit(0, 33, (2, 3, 4, 5), signal=(3,), context=(4, 4, 2)),
        Unit(1, 32, None, (0, 1, 2), (0, 3), feedback=(True, False)),
        Unit(2, 130, None, (3,), (0,)),
    )
    return tape_layout(custom((14, 9, 3), units), Config(**options))


def drawn(layout, streams=1, **given):
    """Arguments of a tick in float32; `given` replaces some. A momentum is of all units."""
    made = oracle.drawn(layout, streams) | given
    made["weights"], made["rate"] = 0.2 * made["weights"], made["rate"] + 0.01
    made["momentum"] = np.full(len(layout.hidden), made["momentum"]) if "momentum" in given else made["momentum"]
    return oracle.typed(made, np.float32)


def on(gpu, made, *cuts, queue=None):
    """The arrays after a tick, which goes by ranges of units that end at the cuts."""
    there = {name: gpu.put(value) if isinstance(value, np.ndarray) else value for name, value in made.items()}
    there["layout"] = gpu.run(pvm.plan, made["layout"])
    for units in itertools.pairwise((0, *cuts, len(made["learns"]))):
        done = (queue or gpu.queue).run(pvm.tick, *oracle.arguments(**there | {"units": units}))
    done.wait()
    return {name: gpu.get(value) for name, value in there.items() if isinstance(value, Array)}


def check(gpu, made):
    found, expected, layout = on(gpu, made), tick(oracle.typed(made, np.float64)), made["layout"]
    for name in set(oracle.WRITTEN) & found.keys() - {"delta"}:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5, err_msg=name)
    for u in np.flatnonzero(made["learns"]):
        own = slice(layout.tape_at[u], layout.tape_at[u + 1])
        np.testing.assert_allclose(found["delta"][:, own], expected["delta"][:, own], atol=1e-5)


def bytes_of(gpu, made, *cuts, **how):
    """Those of all that a tick writes."""
    found = on(gpu, made, *cuts, **how)
    return {name: found[name].tobytes() for name in oracle.WRITTEN if name in found}


@pytest.mark.parametrize(
    ("activation", "still", "later"),
    [("rational2023", {}, True), ("logistic", STILL, False), ("tanh", {}, False), ("rational2023", STILL, True)],
)
def test_the_cuda_hierarchy(gpu, activation, still, later):
    check(gpu, drawn(hierarchy(context_to_output=later), activation=activation, **RAW, **still))


@pytest.mark.parametrize(("streams", "still"), [(1, {}), (3, STILL), (16, {})])
def test_the_classic_hierarchy(gpu, streams, still):
    """All features, the range of what is published, its own order of blocks and frames."""
    layout = hierarchy(**CLASSIC, predict_steps=2)
    check(gpu, drawn(layout, streams, predict_first=False, factors=(0.25, 0.5), **still))


def test_one_step_is_recorded_a_tick_ago(gpu):
    check(gpu, drawn(hierarchy(**CLASSIC, predict_steps=1), squeeze=(1.0, 0.0), factors=(0.0, 0.0), **RAW))


@pytest.mark.parametrize(
    ("options", "streams"),
    [
        ({"unit": "complex"}, 1),
        ({"unit": "complex", "context_to_output": True}, 3),
        ({"unit": "residual"}, 1),
        ({"unit": "complex_residual"}, 3),
        ({"sign_of_error": True}, 3),
    ],
)
def test_kinds_of_units(gpu, options, streams):
    check(gpu, drawn(hierarchy(**options), streams, **RAW))


def test_a_residual_unit_sees_the_error_of_both_predictions(gpu):
    """No configuration asks for it yet; a layout may."""
    check(gpu, drawn(hierarchy(unit="residual")._replace(features=cpu_pvm.SIGNAL | cpu_pvm.ERROR), **RAW))


@pytest.mark.parametrize(
    ("streams", "still", "predict_first"),
    [(1, STILL, False), (1, {}, True), (3, {}, False), (16, STILL, True), (16, {}, False)],
)
def test_units_of_any_size(gpu, streams, still, predict_first):
    check(gpu, drawn(graph(), streams, predict_first=predict_first, **RAW, **still))


@pytest.mark.parametrize("still", [STILL, {}])
def test_a_unit_of_4000_inputs_and_200_hidden(gpu, still):
    units = (Unit(0, 200, (0, 0, 26, 26), context=(0,)),)
    layout = tape_layout(custom((26, 26, 3), units), Config(wiring="classic", predict_steps=1))
    assert layout.columns.tolist() == [4256, 200]
    made = drawn(layout, **RAW, **still)
    made["weights"] /= 4  # as weights of so many inputs are
    check(gpu, made)


@pytest.mark.parametrize(("still", "predict_first"), [(STILL, True), ({}, False)])
def test_matrices_that_stay_beside_streamed_ones_change_no_bits(gpu, monkeypatch, still, predict_first):
    made = drawn(graph(), learns=np.array([1, 1, 0, 1, 1], np.uint8), predict_first=predict_first, **RAW, **still)
    kept = gpu.run(pvm.plan, made["layout"]).kept()
    assert (kept.held >= 0).any() and (kept.held < 0).any() and kept.shared
    found = bytes_of(gpu, made)
    monkeypatch.setattr(pvm, "KEPT", 0)
    assert gpu.run(pvm.plan, made["layout"]).kept().shared == 0
    assert bytes_of(gpu, made) == found


def test_matrices_stay_as_far_as_they_fit():
    """Of each unit one, through which errors are pulled back; a matrix of more than 64 columns stays nowhere."""
    layout, device = graph(), SimpleNamespace(shared_multiprocessor=1 << 30)
    size = layout.rows.astype(int) * layout.columns
    bytes_of_each = 4 * (-(-(size + pvm.SPARE) // 4) * 4)
    stay = (layout.pulled > 0) & (layout.columns <= 64)
    assert stay.sum() == 3
    for least in (0, *np.sort(bytes_of_each[stay])):
        device.shared_block = pvm.OWN + least
        kept = pvm._kept(layout, device, 2)
        assert (kept.held == 0).tolist() == (stay & (bytes_of_each <= least)).tolist()
        assert kept.shared == least and ((kept.held == 0) | (kept.held == -1)).all()


def test_a_model_of_more_than_512_units_has_blocks_of_half_as_many_threads():
    """Another number would change the order of sums, and so the bits of trained models."""
    plans = [SimpleNamespace(layout=SimpleNamespace(model_units=units)) for units in (512, 513)]
    assert [pvm.Plan.threads(plan, 1) for plan in plans] == [448, 224]


def test_blocks_of_many_units_are_smaller(gpu, monkeypatch):
    monkeypatch.setattr(pvm, "FEW", 4)
    check(gpu, drawn(graph(), **RAW))


@pytest.mark.parametrize(("streams", "predict_first"), [(1, False), (5, True)])
def test_frozen_units_predict_and_keep_their_weights(gpu, predict_first, streams):
    learns = np.array([1, 0, 1, 0, 0], np.uint8)
    made = drawn(graph(), streams, learns=learns, predict_first=predict_first, **RAW)
    check(gpu, made)
    found, layout = on(gpu, made), made["layout"]
    for k, size in enumerate(layout.rows.astype(int) * (layout.columns + 1)):
        own = slice(layout.w_at[k], layout.w_at[k] + size)
        for name in ("weights", "velocity"):
            assert (found[name][own].tobytes() == made[name][own].tobytes()) == (not learns[k // 2])


@pytest.mark.parametrize("streams", [1, 3])
def test_the_order_of_work_on_the_device_changes_nothing(gpu, streams):
    made = drawn(graph(), streams)
    one, other = (bytes_of(gpu, made, 1, 3, queue=gpu.device.queue("test", 1)) for _ in gpu.orders(2))
    assert one == other


@pytest.mark.parametrize("cut", [1, 3])
def test_a_tick_by_ranges_of_units_writes_the_same_bytes(gpu, cut):
    made = drawn(graph(), 3)
    assert bytes_of(gpu, made, cut) == bytes_of(gpu, made)


def test_nan_stays_visible(gpu):
    made, layout = drawn(graph()), graph()
    made["world"][0, 0] = np.nan  # the first unit sees it
    found = on(gpu, made)
    assert np.isnan(found["miss"]).tolist() == [True, False, False, False, False]
    assert np.isnan(found["world_next"][0, layout.published_at[0] : layout.published_at[1]]).all()
