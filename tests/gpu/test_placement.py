"""Where rows and a readout go when it is left to us: what was measured decides, and the line says it.

Here are tested hybrid/placement.py, readouts and rows.
"""

import gc
import json
import re

import numpy as np
import pytest

from hybrid import Batched, backend, placement
from hybrid.engine.embedding import Embedding
from hybrid.readout import FullReadout, SampledReadout, TreeReadout, Trial
from tests.support.ruled_engine import Weighed
from tests.support.simulated_command import hybrid
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, of_context

MAKE = {
    kind: lambda place, options, kind=kind: kind(Feed.counts, 6, batch=BATCH, backend=place)
    for kind in (TreeReadout, FullReadout, SampledReadout)
}
FIGURE = re.compile(r"((?:cpu|cuda:0)(?: together \d+)?) ([\d.]+) ms")


def tree(place, options):
    mode = Batched(options["together"]) if options else "deterministic"
    return TreeReadout(Feed.counts, 6, batch=BATCH, backend=place, mode=mode)


def groups(*sizes):
    """What a tree would have tried, with these sizes of groups."""
    return tuple(Trial({"together": size}, f"{size} examples learn at once") for size in sizes)


def timed(monkeypatch, seconds):
    """Let measuring a readout find these seconds; by the name of its place and the size of its groups."""

    def found(readout, *given):
        return seconds[readout.backend.name, readout.together if getattr(readout, "mode", None) == "batch" else 0]

    monkeypatch.setattr(placement, "_seconds", found)


@pytest.mark.parametrize("kind", [TreeReadout, FullReadout])
def test_both_places_are_measured(gpu, kind):
    name, options, line = placement.choose_readout(MAKE[kind], Feed(), "cuda:0")
    figures = dict(FIGURE.findall(line))
    assert name == min(figures, key=lambda place: float(figures[place])) and len(figures) == 2 and not options
    assert line.startswith(f"{name} (measured, a batch of 16: cpu ")


def test_other_ways_are_measured(gpu):
    name, options, line = placement.choose_readout(tree, Feed(), "cuda:0", 2, trials=groups(5, 9))
    figures = {place: float(value) for place, value in FIGURE.findall(line)}
    assert list(figures) == ["cpu", "cuda:0", "cuda:0 together 5", "cuda:0 together 9"]
    assert figures[f"{name} together {options['together']}" if options else name] == min(figures.values())


@pytest.mark.parametrize("faster", [("cpu", 0), ("cuda:0", 0), ("cuda:0", 5), ("cuda:0", 9)])
def test_the_fastest_is_taken(gpu, monkeypatch, faster):
    timed(monkeypatch, dict.fromkeys([("cpu", 0), ("cuda:0", 0), ("cuda:0", 5), ("cuda:0", 9)], 2.0) | {faster: 1.0})
    found = placement.choose_readout(tree, Feed(), "cuda:0", trials=groups(5, 9))
    assert (found.device, found.options.get("together", 0)) == faster
    assert (f"; {faster[1]} examples learn at once" in found.line) == bool(faster[1])


def test_a_way_that_does_not_fit_is_left_out(gpu, monkeypatch):
    timed(monkeypatch, {("cpu", 0): 2.0, ("cuda:0", 5): 1.0})

    def make(place, options):
        if place.name == "cuda:0" and not options:
            raise MemoryError("no room for the nodes")
        return tree(place, options)

    device, options, line = placement.choose_readout(make, Feed(), "cuda:0", trials=groups(5))
    assert (device, options) == ("cuda:0", {"together": 5})
    assert "; cuda:0 left out: no room for the nodes" in line


def test_what_computes_on_the_cpu_only_stays_there(gpu):
    name, options, line = placement.choose_readout(MAKE[SampledReadout], Feed(), "cuda:0")
    assert (name, options) == ("cpu", {}) and line.startswith("cpu, because backend: found")


def test_a_readout_follows_a_trunk_on_the_cpu(gpu):
    assert placement.choose_readout(MAKE[TreeReadout], Feed(), "cpu") == ("cpu", {}, "cpu, where the trunk is")


@pytest.mark.parametrize("bags", [False, True])
def test_both_places_of_rows_are_measured(gpu, bags):
    def make(place):
        return Embedding(CLASSES, 4, **of_context(bags), backend=place)

    name, line = placement.choose_rows(make, Feed(bags=bags), "cuda:0", 2)
    figures = dict(FIGURE.findall(line))
    assert name == min(figures, key=lambda place: float(figures[place])) and list(figures) == ["cpu", "cuda:0"]
    assert line.startswith(f"{name} (measured, a batch of 16: cpu ")
    assert placement.choose_rows(make, Feed(bags=bags), "cpu") == ("cpu", "cpu, where the trunk is")


def test_values_of_ids_and_weights_of_examples_are_measured_with(gpu):
    def make(place):
        return Embedding(CLASSES, 4, optimiser="adagrad", backend=place, bags="weighted")

    assert list(dict(FIGURE.findall(placement.choose_rows(make, Weighed(), "cuda:0", 2)[1]))) == ["cpu", "cuda:0"]
    found = placement.choose_readout(tree, Weighed(), "cuda:0", 2, trials=groups(5))
    assert list(dict(FIGURE.findall(found.line))) == ["cpu", "cuda:0", "cuda:0 together 5"]


class Several(Feed):
    """Two targets an example."""

    most_targets = 2 * BATCH

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        return batch._replace(target=np.repeat(batch.target, 2), target_at=np.arange(0, 2 * BATCH + 1, 2))


def test_a_readout_that_learns_from_several_targets_stays_on_the_cpu(gpu):
    device, options, line = placement.choose_readout(tree, Several(), "cuda:0", 2, trials=groups(5))
    assert (device, options) == ("cpu", {}) and "target_at: found an array, expected None" in line


@pytest.mark.parametrize("faster", ["cpu", "cuda:0"])
def test_the_faster_place_of_rows_is_taken(gpu, monkeypatch, faster):
    monkeypatch.setattr(placement, "_seconds_of_rows", lambda rows, *given: 1.0 + (rows.backend.name != faster))
    assert placement.choose_rows(lambda place: Embedding(CLASSES, 4, backend=place), Feed(), "cuda:0")[0] == faster


def test_measuring_leaves_nothing_behind(gpu):
    def measured():
        placement.choose_readout(tree, Feed(), "cuda:0", trials=groups(5))
        placement.choose_rows(lambda place: Embedding(CLASSES, 4, per_example=CONTEXT, backend=place), Feed(), "cuda:0")
        gc.collect()
        return backend.choose("cuda:0").device.memory()["device"]

    assert measured() == measured()


def test_rows_that_do_not_fit_stay_on_the_cpu(train, tmp_path):
    code, _, errors = hybrid(*train, "--device", "cuda:0", "--rows-device", "auto", CUDASIM_MEMORY="1000")
    assert errors[0].startswith("hybrid: rows device auto: cpu, because the rows do not fit: cuda:0: no room for an ")
    assert code == 2 and "out of memory" in errors[1]  # the trunk has no room either


def test_choices_are_said_once_and_kept(train, tmp_path):
    auto = ("--rows-device", "auto", "--readout-device", "auto")
    code, _, errors = hybrid(*train, "--device", "cuda:0", *auto)
    assert code == 0 and len(errors) == 2, errors
    said = {line.split()[1]: line for line in errors}
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    for part, line in said.items():
        assert line.startswith(f"hybrid: {part} device auto: c")
        assert kept[f"{part}_device"] == line.split(": ")[2].split()[0]
    assert kept["mode"] in ("deterministic", "batch")
    assert "cuda:0 mode batch " in said["readout"]
    for part in ("rows", "readout"):
        code, _, errors = hybrid("train", "--resume", str(tmp_path / "run"), f"--{part}-device", "auto")
        assert code == 2 and f"--{part}-device auto: measured when a run begins" in errors[0]
