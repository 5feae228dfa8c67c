"""Units that are shared by the blocks of a cluster: which they are, in what order they come, whole models, frames in graphs.

tests/gpu/test_pvm.py compares single ticks bit for bit.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from gpu import pvm, pvm_plan
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.model import PVM
from hybrid.pvm.rules import wire
from tests import cudasim
from tests.support.small_pvm import BLIND, TINY, Scene, assert_same, bytes_of, walk

UNEVEN = Config(grids=((2, 2), (1, 1)), block=2, hidden=(9, 60))


@pytest.fixture
def clusters(gpu, monkeypatch):
    """All units with as many rows as a cluster has blocks are shared."""
    if gpu.device.capability < (9, 0):
        pytest.skip("the device has no clusters")
    monkeypatch.setattr(pvm_plan, "LARGE", 0)
    monkeypatch.setattr(gpu.device, "multiprocessors", 1 << 20)  # so an even share is nothing


def parameters(layout):
    return np.add.reduceat(layout.rows.astype(int) * (layout.columns + 1), layout.layer_at[:-1])


def test_a_model_of_more_than_512_units_has_blocks_of_half_as_many_threads():
    """Another number would change the order of sums, and so the bits of trained models."""
    plans = [SimpleNamespace(layout=SimpleNamespace(model_units=units)) for units in (512, 513)]
    assert [pvm_plan.Plan.threads(plan, 1) for plan in plans] == [448, 224]


def test_the_largest_unit_is_shared_and_the_others_go_together(gpu, clusters, monkeypatch):
    monkeypatch.setattr(gpu.device, "multiprocessors", 1)  # two places, one of which the top unit would take for longer
    layout = tape_layout(wire(UNEVEN), UNEVEN)
    size = parameters(layout)
    assert size[4] > size.sum() / 2 > size[:4].max()
    plan = gpu.run(pvm.plan, layout)
    assert plan.shares(0, 5) and plan.shares(4, 5) and not plan.shares(0, 4)
    found = gpu.get(gpu.run(plan.units, 0, 5, False, True))
    places = np.stack([found[name] for name in ("number", "rank", "blocks")], axis=1)
    assert places[:4].tolist() == [[4, rank, 4] for rank in range(4)]
    assert sorted(places[4:].tolist()) == [[unit, 0, 1] for unit in range(4)]
    assert (found["layers"]["held"][:4, :2] == -1).all() and (found["layers"]["held"][4:, 1] >= 0).all()
    last = gpu.get(gpu.run(plan.units, 3, 5, False, True))
    assert last["blocks"].tolist() == [4] * 4 + [1, 0, 0, 0]


def test_clusters_with_the_most_parameters_a_block_come_first():
    """Sizes by hand: unit 2 is shared, 400 a block; of the others the four largest go together, the most of them 500."""
    size = np.array([100, 500, 1600, 200, 300, 50])
    units = np.zeros(6, pvm_plan.UNIT)
    units["number"], units["blocks"] = np.arange(6), 1
    found = pvm_plan._in_clusters(units, size, size > 1000)
    assert found["number"].tolist() == [1, 4, 3, 0] + [2] * 4 + [5, 0, 0, 0]
    assert found["blocks"].tolist() == [1] * 4 + [4] * 4 + [1, 0, 0, 0]


def test_there_is_a_ring_from_some_size_of_shared_memory_on_with_and_without_room_for_velocities(gpu, monkeypatch):
    layout = tape_layout(wire(UNEVEN), UNEVEN)
    for arrays in (1, 2):
        rooms = (SimpleNamespace(shared_block=room, shared_multiprocessor=1 << 30) for room in range(2000, 40_000, 16))
        there = [pvm_plan._ring(layout, room, arrays, np.zeros(5, bool)) is not None for room in rooms]
        assert there == sorted(there) and not there[0] and there[-1]
    monkeypatch.setattr(gpu.device, "shared_block", 20_000)
    plan = gpu.run(pvm.plan, layout)
    plan.bulk = True
    expected = [pvm_plan._ring(layout, gpu.device, arrays, np.zeros(5, bool))[:2] for arrays in (1, 2)]
    assert [plan.ring(momentum)[:2] for momentum in (False, True)] == expected and expected[0] != expected[1]


@pytest.mark.parametrize("why", ["it is not asked for", "small", "few rows", "even"])
def test_who_is_not_shared(gpu, clusters, monkeypatch, why):
    config = Config(grids=((2, 2), (1, 1)), block=2, hidden=3) if why == "few rows" else UNEVEN
    plan = gpu.run(pvm.plan, tape_layout(wire(config), config))
    if why == "small":
        monkeypatch.setattr(pvm_plan, "LARGE", parameters(plan.layout).max())  # as large is not larger
    if why == "even":
        monkeypatch.setattr(gpu.device, "multiprocessors", 0.5)  # one place has all
    plan.clusters = why != "it is not asked for"
    assert not plan.shares(0, 5)


@pytest.mark.parametrize("ahead", [0, 4])
@pytest.mark.parametrize("config", [TINY, BLIND], ids=["readouts", "blind"])
def test_a_model_in_graphs_has_the_bytes_that_it_has_without_clusters(gpu, cuda, clusters, monkeypatch, config, ahead):
    shares, asked = pvm_plan.Plan.shares, []
    with monkeypatch.context() as patch:
        patch.setattr(pvm_plan.Plan, "_shared", lambda plan: np.zeros(len(plan), bool))
        model = PVM(config, device=cuda)
        expected, end = walk(model, Scene(24)), bytes_of(model)
    monkeypatch.setattr(pvm_plan.Plan, "shares", lambda *given: asked.append(shares(*given)) or asked[-1])
    for seed in range(3):
        if gpu.simulated:
            cudasim.seed(seed)
        model = PVM(config, device=cuda)
        assert_same(list(model.run(Scene(24), every=3, ahead=ahead))[::3], expected[::3])
        assert bytes_of(model) == end
    assert asked and all(asked)


def test_several_streams_are_not_shared(gpu, cuda, clusters):
    found, expected = PVM(BLIND, streams=2, device=cuda), PVM(BLIND, streams=2, device="cpu")
    for one, other in zip(found.run(Scene(4, 2)), expected.run(Scene(4, 2)), strict=True):
        np.testing.assert_allclose(one.error, other.error, rtol=0, atol=1e-6)
