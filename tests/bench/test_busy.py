"""What a busy machine leaves is measured in a process of its own for each setting, under loads that are really there."""

import functools
import os

import pytest

from bench.step import busy


def test_a_setting_is_that_process_s_alone(monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "5")
    with busy._worker({"OMP_WAIT_POLICY": "passive"}) as worker:
        told = worker.submit(functools.partial(os.getenv, "OMP_WAIT_POLICY")).result()
        spins = worker.submit(functools.partial(os.getenv, "GOMP_SPINCOUNT")).result()
    assert (told, spins) == ("passive", None)
    assert os.environ["GOMP_SPINCOUNT"] == "5" and "OMP_WAIT_POLICY" not in os.environ


def test_what_does_not_learn_is_not_measured():
    losses = iter(range(32))
    with pytest.raises(AssertionError, match="does not fall"):
        busy._learning(lambda: next(losses))


def test_figures_are_of_all_steps_and_of_each_turn():
    found = busy._figures([[0.1] * 10, [0.3] * 10])
    assert found["value"] == pytest.approx(5) and found["samples"] == pytest.approx([10, 10 / 3])
    assert found["spread"] == pytest.approx((10 - 10 / 3) / 5) and found["steps"] == 20
