"""Where a readout goes when it is left to us: what was measured decides, and the line says it."""

import json
import re

import pytest

from hybrid import backend, placement
from hybrid.readout import FullReadout, SampledReadout, TreeReadout
from tests.gpu.test_command_line import hybrid, train  # noqa: F401  (a fixture)
from tests.hybrid.test_engine import BATCH, Feed

MAKE = {
    kind: lambda place, kind=kind: kind(Feed.counts, 6, batch=BATCH, backend=place)
    for kind in (TreeReadout, FullReadout, SampledReadout)
}


@pytest.mark.parametrize("kind", [TreeReadout, FullReadout])
def test_both_places_are_measured(gpu, kind):
    name, line = placement.choose(MAKE[kind], Feed(), "cuda:0")
    figures = dict(re.findall(r"(cpu|cuda:0) ([\d.]+) ms", line))
    assert name == min(figures, key=lambda place: float(figures[place])) and len(figures) == 2
    assert line.startswith(f"{name} (measured, a batch of 16: ")


@pytest.mark.parametrize("faster", ["cpu", "cuda:0"])
def test_the_faster_is_taken(gpu, monkeypatch, faster):
    monkeypatch.setattr(placement, "_beside", lambda *given: 1.0 + (faster == "cpu"))
    monkeypatch.setattr(placement, "_on_the_host", lambda *given: 1.0 + (faster != "cpu"))
    assert placement.choose(MAKE[TreeReadout], Feed(), "cuda:0")[0] == faster


def test_what_computes_on_the_cpu_only_stays_there(gpu):
    name, line = placement.choose(MAKE[SampledReadout], Feed(), "cuda:0")
    assert name == "cpu" and line.startswith("cpu, because backend: found")


def test_a_readout_follows_a_trunk_on_the_cpu(gpu):
    assert placement.choose(MAKE[TreeReadout], Feed(), "cpu") == ("cpu", "cpu, where the trunk is")


def test_measuring_leaves_nothing_behind(gpu):
    import gc

    gc.collect()
    device = backend.choose("cuda:0").device
    placement.choose(MAKE[TreeReadout], Feed(), "cuda:0")
    gc.collect()
    before = device.memory()["device"]
    placement.choose(MAKE[TreeReadout], Feed(), "cuda:0")
    gc.collect()
    assert device.memory()["device"] == before


def test_the_choice_is_said_once_and_kept(train, tmp_path):  # noqa: F811
    code, _, errors = hybrid(*train, "--device", "cuda:0", "--readout-device", "auto")
    assert code == 0 and len(errors) == 1 and errors[0].startswith("hybrid: readout device auto: c"), errors
    chosen = errors[0].split(": ")[2].split()[0]
    run = tmp_path / "run"
    assert json.loads((run / "run.json").read_text())["readout_device"] == chosen
    code, _, errors = hybrid("train", "--resume", str(run), "--readout-device", "auto")
    assert code == 2 and "--readout-device auto: measured when a run begins" in errors[0]
