import re
from types import SimpleNamespace

import pytest

from hybrid import backend


def test_the_cpu_can_be_chosen_by_name():
    chosen = backend.choose("cpu")
    assert chosen.name == "cpu" and chosen.units.__name__ == "cpu.units" and chosen.device.name == "cpu"


def test_without_a_name_the_cpu_is_taken_where_no_gpu_can_be_used(monkeypatch):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: "no driver")
    assert backend.choose(None).name == "cpu"
    assert backend.choose("auto").name == "cpu"
    assert backend.auto() == "cpu, because no driver"


def test_auto_names_the_gpu_that_it_takes(monkeypatch):
    taken = SimpleNamespace(device=SimpleNamespace(cuda=SimpleNamespace(name=lambda: "Abacus")))
    monkeypatch.setattr(backend, "why_no_gpu", lambda: None)
    monkeypatch.setattr(backend, "_gpu", lambda name, ordinal, tf32: taken)
    assert backend.auto() == "cuda:0, Abacus"
    assert backend.choose("auto") is taken


def test_a_device_that_cannot_be_used_says_why(monkeypatch):
    monkeypatch.setattr(backend, "why_no_gpu", lambda: "no driver")
    with pytest.raises(ValueError, match=r'"cuda:1" cannot be used: no driver; use --device cpu'):
        backend.choose("cuda:1")


@pytest.mark.parametrize("name", ["cuda", "cuda:x", "cuda:0+fp16", "gpu", ""])
def test_a_device_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=re.escape(f'device: found "{name}"')):
        backend.choose(name)
