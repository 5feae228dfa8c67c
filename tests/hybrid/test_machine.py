"""Memory as the system tells it."""

import os
import sys

import numpy as np
import pytest

from hybrid import machine
from hybrid.engine.cores import Cores


def test_memory_is_at_least_what_this_process_has_held():
    array = np.ones(2**22)
    assert array.nbytes < machine.peak_memory() <= machine.memory()


def test_macos_counts_peak_memory_in_bytes(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert machine.peak_memory() < machine.memory() / 100


def test_a_system_that_does_not_say(monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setitem(sys.modules, "resource", None)
    assert machine.memory() is None and machine.peak_memory() is None


def test_pin_is_refused_where_threads_have_no_cores_of_their_own(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    with pytest.raises(ValueError, match=r"^pin: not offered on .*leave it out$"):
        Cores(None, None, 2, None, pin=True)
