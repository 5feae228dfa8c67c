"""Which kernels run for a collection of MLPs, in how many blocks, and what they hold in shared memory."""

import numpy as np
import pytest

from gpu.plan import UNIT
from gpu.runtime import blas
from tests.support.units import MANY, WARPS, Case

EQUAL = [7, 7, 7], [5, 5, 5], [6, 6, 6]  # one batch of equal GEMMs


@pytest.fixture
def products(monkeypatch):
    """Products of matrices that are made meanwhile."""
    made, gemm = [], blas.gemm
    monkeypatch.setattr(blas, "gemm", lambda *given, **how: (made.append(given), gemm(*given, **how)))
    return made


@pytest.mark.parametrize(("batch", "sizes", "many"), [(5, MANY, 0), (5, EQUAL, 1), (5, WARPS, 7), (40, MANY, 40)])
def test_many_units_of_few_examples_take_no_gemm(gpu, products, batch, sizes, many):
    Case(batch, sizes=sizes).on(gpu).forward("tanh")
    assert len(products) == 2 * many


def test_units_whose_signals_just_fit_take_no_gemm(gpu, monkeypatch, launched, products):
    case = Case(5, sizes=MANY).on(gpu)
    case.backward("tanh")
    assert launched == {"backward": (40, 256)}
    monkeypatch.setattr(gpu.device, "shared_block", int(case.plan.shared(5, 256, backward=True).max()))
    case.forward("tanh")
    assert products == []
    monkeypatch.setattr(gpu.device, "shared_block", gpu.device.shared_block - 1)
    case.forward("tanh")
    assert products


def test_places_of_weights_and_signals_may_exceed_32_bits():
    assert [UNIT[name] for name in ("w", "x", "hidden", "y")] == [np.int64] * 4


@pytest.mark.parametrize("room", [5000, 7500])
def test_a_step_asks_for_no_more_shared_memory_than_there_is(gpu, monkeypatch, room):
    monkeypatch.setattr(gpu.device, "shared_block", room)
    case = Case(1, 0, ([70, 3, 130], [21, 4, 5], [30, 3, 40])).on(gpu)
    bins = case.plan.bins(1)
    assert max(bin.shared for bin in bins) == room and {bin.kind for bin in bins} == {"part", "whole"}
    case.step("tanh")  # the driver watches what is behind that
