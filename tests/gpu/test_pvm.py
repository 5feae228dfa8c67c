"""A tick of a Predictive Vision Model on the device, against the CPU in float64."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from cpu import pvm as cpu_pvm
from gpu import pvm
from gpu.runtime.array import Array
from hybrid.contract import Gathering, Learning, Past, State
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.wiring import Unit, custom, wire

SMALL = {"grids": (4, 3, 2, 1), "block": 2, "hidden": 9}
CLASSIC = SMALL | {"wiring": "classic", "features": ("signal", "derivative", "integral", "error", "past")}
WRITTEN = ("weights", "velocity", "worlds", "tapes", "signals", "integral", "low", "high", "miss")


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


class Case:
    """Some ticks, each with arrays of its own, from the same random numbers on the device and, in float64, on the CPU."""

    def __init__(self, layout, *, streams=1, momentum=0.4, minmax=False, learns=None, ticks=4, lag=2, **given):
        rng = np.random.default_rng(streams)
        units = layout.hidden.size
        self.layout, self.ticks, self.lag, self.cuts = layout, ticks, lag, (0, units)
        world = int(layout.published_at[-1] + layout.hidden[-1])
        tape, signals = int(layout.tape_at[-1]), int(layout.signal_at[-1])
        size = int((layout.rows.astype(int) * (layout.columns + 1)).sum())
        integral = signals if layout.features & cpu_pvm.INTEGRAL else 0
        host = {
            "worlds": rng.random((ticks + 1, streams, world)),
            "tapes": rng.random((ticks + lag, streams, tape)),
            "signals": rng.random((ticks + 1, streams, signals)),
            "integral": rng.random((streams, integral)),
            "delta": np.zeros((streams, tape)),
            "low": 0.4 * rng.random((streams, world)) if minmax else None,
            "high": 0.6 + 0.4 * rng.random((streams, world)) if minmax else None,
            "miss": np.zeros(units),
            "weights": rng.normal(0, 0.1, size),
            "velocity": rng.normal(0, 0.01, size) if momentum else None,
            "rate": rng.uniform(0.01, 0.1, units),
            "momentum": momentum * rng.random(units),
        }
        self.host = {name: array if array is None else array.astype(np.float32) for name, array in host.items()}
        self.learns = np.ones(units, np.uint8) if learns is None else np.array(learns, np.uint8)
        self.adapts = np.resize(np.array([1, 1, 0], np.uint8), units)
        self.given = {"squeeze": (0.8, 0.1), "tau": 0.9, "factors": (1.0, 0.5), "predict_first": True} | given
        self.given.setdefault("activation", "rational")

    def tick(self, module, layout, t, arrays):
        """The tick `t` of either backend."""
        a, given = SimpleNamespace(**arrays), SimpleNamespace(**self.given)
        written = a.worlds[t + 1], a.tapes[t + self.lag], a.signals[t + 1], a.integral, a.delta, a.low, a.high, a.miss
        past = Past(a.worlds[t], a.tapes[t + self.lag - 1], a.tapes[t], a.signals[t])
        learning = Learning(a.rate, a.momentum, a.learns, a.adapts, given.predict_first)
        gathering = Gathering(*given.squeeze, given.tau, *given.factors)
        for first, last in itertools.pairwise(self.cuts):
            state = State(*written, a.weights, a.velocity)
            module.tick(state, layout, past, learning, gathering, given.activation, first, last)

    def on_the_cpu(self):
        """All arrays after the last tick."""
        arrays = {name: array if array is None else array.astype(float) for name, array in self.host.items()}
        if arrays["velocity"] is None:  # the same, and one kernel less to compile
            arrays["velocity"] = np.zeros_like(arrays["weights"])
        arrays |= {"learns": self.learns, "adapts": self.adapts}
        for t in range(self.ticks):
            self.tick(cpu_pvm, cpu_pvm.plan(self.layout), t, arrays)
        return arrays

    def on(self, gpu, queue=None):
        """All arrays after the last tick; what a tick should write is not initialised before. Ticks do not wait."""
        host = self.host | {"learns": self.learns, "adapts": self.adapts}
        there = {name: array if array is None else gpu.put(array) for name, array in host.items()}
        frame = int(self.layout.published_at[0])
        there["worlds"] = [gpu.put(world) for world in host["worlds"]]
        there["tapes"] = [gpu.put(tape) for tape in host["tapes"][: self.lag]]
        there["tapes"] += [gpu.empty(host["delta"].shape, np.float32) for _ in range(self.ticks)]
        there["signals"] = [gpu.put(host["signals"][0])]
        there["signals"] += [gpu.empty(host["signals"][0].shape, np.float32) for _ in range(self.ticks)]
        there["miss"] = gpu.empty(self.learns.shape, np.float32)
        for world, known in zip(there["worlds"][1:], host["worlds"][1:], strict=True):
            gpu.device.write(world, np.where(np.arange(known.shape[1]) < frame, known, np.nan).astype(np.float32))
        plan = gpu.run(pvm.plan, self.layout)
        queue = queue or gpu.queue
        for t in range(self.ticks):
            done = queue.run(self.tick, pvm, plan, t, there)
        done.wait()
        for name in ("worlds", "tapes", "signals"):
            there[name] = [gpu.get(array) for array in there[name]]
        return {
            name: gpu.get(array) if isinstance(array, Array) else None if array is None else np.stack(array)
            for name, array in there.items()
        }

    def check(self, gpu, tolerance=1e-5):
        found, expected = self.on(gpu), self.on_the_cpu()
        for name in WRITTEN:
            if found[name] is not None:
                close = {"rtol": 1e-5, "atol": tolerance, "err_msg": name}
                np.testing.assert_allclose(found[name], expected[name], **close)
        for u in np.flatnonzero(self.learns):
            own = slice(self.layout.tape_at[u], self.layout.tape_at[u + 1])
            np.testing.assert_allclose(found["delta"][:, own], expected["delta"][:, own], atol=tolerance)


@pytest.mark.parametrize(
    ("activation", "momentum", "later"),
    [("rational2023", 0.4, True), ("logistic", 0, False), ("tanh", 0.4, False), ("rational2023", 0, True)],
)
def test_the_cuda_hierarchy(gpu, activation, momentum, later):
    Case(hierarchy(context_to_output=later), momentum=momentum, activation=activation).check(gpu)


@pytest.mark.parametrize(("streams", "momentum"), [(1, 0.4), (3, 0), (16, 0.4)])
def test_the_classic_hierarchy(gpu, streams, momentum):
    """All features, the range of what is published, its own order of blocks and frames."""
    layout = hierarchy(**CLASSIC, predict_steps=2)
    Case(layout, streams=streams, momentum=momentum, minmax=True, predict_first=False, factors=(0.25, 0.5)).check(gpu)


def test_one_step_is_recorded_a_tick_ago(gpu):
    Case(hierarchy(**CLASSIC, predict_steps=1), lag=1, squeeze=(1.0, 0.0), factors=(0.0, 0.0)).check(gpu)


def test_signs_of_errors(gpu):
    layout = hierarchy(sign_of_error=True)
    assert layout.signed.any()
    Case(layout, streams=3).check(gpu)


@pytest.mark.parametrize(
    ("kind", "streams"), [("complex", 1), ("complex, later", 3), ("residual", 1), ("complex_residual", 3)]
)
def test_kinds_of_units(gpu, kind, streams):
    unit, _, later = kind.partition(",")
    Case(hierarchy(unit=unit, context_to_output=bool(later)), streams=streams).check(gpu)


def test_a_residual_unit_sees_the_error_of_both_predictions(gpu):
    """No configuration asks for it yet; a layout may."""
    layout = hierarchy(unit="residual")._replace(features=cpu_pvm.SIGNAL | cpu_pvm.ERROR)
    Case(layout, ticks=3).check(gpu)


@pytest.mark.parametrize(
    ("streams", "momentum", "predict_first"),
    [(1, 0, False), (1, 0.4, True), (3, 0.4, False), (16, 0, True), (16, 0.4, False)],
)
def test_units_of_any_size(gpu, streams, momentum, predict_first):
    Case(graph(), streams=streams, momentum=momentum, predict_first=predict_first, ticks=3).check(gpu)


@pytest.mark.parametrize("momentum", [0, 0.4])
def test_a_unit_of_4000_inputs_and_200_hidden(gpu, momentum):
    units = (Unit(0, 200, (0, 0, 26, 26), context=(0,)),)
    layout = tape_layout(custom((26, 26, 3), units), Config(wiring="classic", predict_steps=1))
    assert layout.columns.tolist() == [4256, 200]
    case = Case(layout, momentum=momentum, lag=1, ticks=2)
    case.host["weights"] /= 4  # as weights of so many inputs are
    case.check(gpu)


def bytes_of(case, gpu, *queue):
    """Those of all that a tick writes."""
    found = case.on(gpu, *queue)
    return {name: None if found[name] is None else found[name].tobytes() for name in (*WRITTEN, "delta")}


@pytest.mark.parametrize(("momentum", "predict_first"), [(0, True), (0.4, False)])
def test_matrices_that_stay_beside_streamed_ones_change_no_bits(gpu, monkeypatch, momentum, predict_first):
    case = Case(graph(), momentum=momentum, ticks=2, learns=[1, 1, 0, 1, 1], predict_first=predict_first)
    kept = gpu.run(pvm.plan, case.layout).kept()
    assert (kept.held >= 0).any() and (kept.held < 0).any() and kept.shared
    found = bytes_of(case, gpu)
    monkeypatch.setattr(pvm, "KEPT", 0)
    assert gpu.run(pvm.plan, case.layout).kept().shared == 0
    assert bytes_of(case, gpu) == found


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
    Case(graph(), ticks=3).check(gpu)


@pytest.mark.parametrize(("streams", "predict_first"), [(1, False), (5, True)])
def test_frozen_units_predict_and_keep_their_weights(gpu, predict_first, streams):
    case = Case(graph(), streams=streams, learns=[1, 0, 1, 0, 0], ticks=3, predict_first=predict_first)
    case.check(gpu)
    found, size = case.on(gpu), case.layout.rows.astype(int) * (case.layout.columns + 1)
    for k in range(2 * case.learns.size):
        own = slice(case.layout.w_at[k], case.layout.w_at[k] + size[k])
        for name in ("weights", "velocity"):
            assert (found[name][own].tobytes() == case.host[name][own].tobytes()) == (not case.learns[k // 2])


@pytest.mark.parametrize("streams", [1, 3])
def test_the_order_of_work_on_the_device_changes_nothing(gpu, streams):
    case = Case(graph(), streams=streams, minmax=True, ticks=3)
    one, other = (bytes_of(case, gpu, gpu.device.queue("test", 1)) for _ in gpu.orders(2))
    assert one == other


def test_a_tick_by_ranges_of_units_writes_the_same_bytes(gpu, streams=3):
    case = Case(graph(), streams=streams, minmax=True, ticks=3)
    whole = bytes_of(case, gpu)
    for cut in (1, 3):
        case.cuts = (0, cut, 5)
        assert bytes_of(case, gpu) == whole, cut


def test_nan_stays_visible(gpu):
    case = Case(graph(), ticks=1, minmax=True)
    case.host["worlds"][0, 0, 0] = np.nan  # the first unit sees it
    found = case.on(gpu)
    assert np.isnan(found["miss"]).tolist() == [True, False, False, False, False]
    assert np.isnan(found["worlds"][1, 0, case.layout.published_at[0] : case.layout.published_at[1]]).all()


def test_the_largest_unit_comes_first(gpu):
    layout = graph()
    plan = gpu.run(pvm.plan, layout)
    assert len(plan) == 5
    size = np.add.reduceat(layout.rows.astype(int) * (layout.columns + 1), layout.layer_at[:-1])
    assert gpu.get(gpu.run(plan.units, 0, 5))["number"].tolist() == np.argsort(-size).tolist()
    assert gpu.get(gpu.run(plan.units, 1, 4))["number"].tolist() == (1 + np.argsort(-size[1:4])).tolist()
