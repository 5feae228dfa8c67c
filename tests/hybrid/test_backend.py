"""Which modules compute on which device, and arrays that go there and come back."""

import re

import pytest

from hybrid import backend
from hybrid.readout import FullReadout, TreeReadout


def test_where_no_gpu_can_be_used_the_cpu_is_taken_and_a_gpu_by_name_says_why(monkeypatch):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: "no driver")
    assert backend.choose(None).name == "cpu"
    assert backend.choose("auto").name == "cpu"
    assert backend.auto() == "cpu, because no driver"
    with pytest.raises(ValueError, match=r'"cuda:1" cannot be used: no driver; use "cpu"'):
        backend.choose("cuda:1")


@pytest.mark.parametrize("name", ["cuda", "cuda:x", "cuda:0+fp16", "gpu", "", 5])
def test_a_device_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=re.escape(f'device: found "{name}"')):
        backend.choose(name)


@pytest.mark.parametrize("turn, name, at", [(0, "cuda:1", 1), (1, "cuda:1", 2), (2, "cuda:1", 0), (2, "cuda:9", 9)])
def test_processes_of_a_machine_take_its_devices_in_turn(monkeypatch, turn, name, at):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: None)
    monkeypatch.setattr(backend, "turn", turn)
    monkeypatch.setattr(backend, "_gpu", lambda *given: given)
    monkeypatch.setattr("gpu.runtime.available.devices", lambda: 3)
    assert backend.choose(name) == (name, at, "fp32")


@pytest.fixture
def partial(tmp_path, monkeypatch):
    """A backend with the kernels of rows only, on the CPU's device."""
    (tmp_path / "partial").mkdir()
    (tmp_path / "partial" / "device.py").write_text("from cpu.device import Device\n")
    (tmp_path / "partial" / "rows.py").write_text("from cpu.rows import gather, scatter\n")
    monkeypatch.syspath_prepend(tmp_path)
    return backend._backend("partial", "cuda:7")


def test_a_backend_offers_the_kernels_that_its_package_has(partial):
    assert partial.name == "cuda:7" and partial.rows.__name__ == "partial.rows"
    with pytest.raises(AttributeError, match="'colour'"):
        _ = partial.colour


@pytest.mark.parametrize(("kernels", "readout"), [("softmax", FullReadout), ("tree_softmax", TreeReadout)])
def test_a_readout_whose_kernels_a_backend_lacks_is_refused(partial, kernels, readout):
    expected = f'"cuda:7" has no kernels for {kernels}, only for rows; use "cpu"'
    with pytest.raises(ValueError, match=re.escape(expected)):
        readout([3, 2, 1], 4, backend=partial)
