import re

import pytest

from hybrid import backend
from hybrid.readout import FullReadout, TreeReadout


def test_without_a_name_the_cpu_is_taken_where_no_gpu_can_be_used(monkeypatch):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: "no driver")
    assert backend.choose(None).name == "cpu"
    assert backend.choose("auto").name == "cpu"
    assert backend.auto() == "cpu, because no driver"


def test_a_device_that_cannot_be_used_says_why(monkeypatch):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: "no driver")
    with pytest.raises(ValueError, match=r'"cuda:1" cannot be used: no driver; use --device cpu'):
        backend.choose("cuda:1")


@pytest.mark.parametrize("name", ["cuda", "cuda:x", "cuda:0+fp16", "gpu", ""])
def test_a_device_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=re.escape(f'device: found "{name}"')):
        backend.choose(name)


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


@pytest.mark.parametrize(
    ("kernels", "make"),
    [
        ("softmax", lambda partial: FullReadout(10, 4, backend=partial)),
        ("tree_softmax", lambda partial: TreeReadout([3, 2, 1], 4, backend=partial)),
    ],
)
def test_a_readout_whose_kernels_a_backend_lacks_is_refused(partial, kernels, make):
    expected = f'"cuda:7" has no kernels for {kernels}, only for rows; use --device cpu'
    with pytest.raises(ValueError, match=re.escape(expected)):
        make(partial)
