"""The rivals compute what ours does, here on the CPU, a CUDA graph by a stand-in."""

import sys
import types

import numpy as np
import pytest

from bench import gpu_rivals, gpu_sparse, gpu_units
from hybrid.layout import unit_layout

torch = pytest.importorskip("torch")


def collection():
    """Units of one size."""
    layout = unit_layout([5] * 3, [4] * 3, [6] * 3)
    weights = np.random.default_rng(0).standard_normal(int(layout.w_at[-1]), np.float32)
    return gpu_units.Collection(layout, 1, 0.0, weights)


@pytest.fixture
def units():
    return collection()


def moves_once(units, rival):
    with pytest.raises(AssertionError, match="weights: off by"):
        units.check(*rival.sampled())
    rival.step()
    units.check(*rival.sampled())
    rival.step()
    with pytest.raises(AssertionError, match="weights: off by"):
        units.check(*rival.sampled())


def test_a_compiled_step(units, monkeypatch):
    monkeypatch.setattr(gpu_rivals.Compiled, "compiler", "aot_eager")  # inductor calls a compiler for half a minute
    moves_once(units, gpu_rivals.Compiled(torch, units, "cpu"))


@pytest.mark.parametrize("kind", [gpu_rivals.CompiledSoftmax, gpu_rivals.Chunked])
def test_a_step_of_the_softmax(kind, monkeypatch):
    if kind is gpu_rivals.Chunked and not hasattr(torch.nn, "LinearCrossEntropyOptions"):
        pytest.skip("PyTorch has no linear_cross_entropy in chunks")
    monkeypatch.setattr(gpu_rivals.CompiledSoftmax, "compiler", "aot_eager")
    made = kind(torch, gpu_sparse.Classification(300, 8, 16), "cpu")
    made.step()
    made.check(1e-4)
    made.step()
    with pytest.raises(AssertionError, match="a wrong result is not timed"):
        made.check(1e-4)


@pytest.mark.parametrize(("kind", "least"), [(gpu_rivals.Cut, "high"), (gpu_rivals.CutExactly, None)])
def test_cut_cross_entropy_gets_rounded_factors_and_is_held_to_their_accuracy(kind, least, monkeypatch):
    asked = []

    def stand_in(hidden, weights, target, reduction, filter_eps, impl):
        asked.append((hidden.dtype, weights.dtype, reduction, filter_eps, impl))
        return torch.nn.functional.cross_entropy(hidden.float() @ weights.float().T, target, reduction=reduction)

    monkeypatch.setitem(sys.modules, "cut_cross_entropy", types.SimpleNamespace(linear_cross_entropy=stand_in))
    made = kind(torch, gpu_sparse.Classification(300, 8, 16), "cpu")
    made.step()
    made.check(made.tolerance)
    assert asked == [(torch.bfloat16, torch.bfloat16, "sum", least, "cce")]
    with pytest.raises(AssertionError):
        made.check(1e-4)
