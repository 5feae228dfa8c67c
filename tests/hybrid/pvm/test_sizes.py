import pytest

from hybrid import machine
from hybrid.pvm.config import Config
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.model import PVM, fewest, parameters, refuse_too_large
from hybrid.pvm.presets import load
from hybrid.pvm.wiring import wire

TOP = [(784, 1029), (637, 637), (441, 441)]
MIDDLE = (833, 2058)
# name: units, projections of signals and contexts, inputs (least, most) of each layer, parameters, those of the readouts
TABLE = {
    "quick": (139, 156, 905, [(256, 320), (416, 576), (416, 576), (416, 416), (288, 288)], 1_880_992, 356_480),
    "small": (265, 484, 4453, [(591, 1816), MIDDLE, (833, 1470), *TOP], 17_538_806, 8_619_800),
    "classic": (350, 376, 4619, [(542, 885), (784, 1127), (784, 1176), (784, 1078), *TOP[1:]], 18_556_921, 11_334_400),
    "flat210m": (14_161, 0, 0, [(150, 150)], 210_984_739, 0),
}


@pytest.mark.parametrize("name", TABLE)
def test_counts_of_the_named_configurations(name):
    units, signals, contexts, inputs, weights, readout = TABLE[name]
    config, _ = load(name)
    wiring = wire(config)
    layout = tape_layout(wiring, config)
    size = layout.columns[layout.layer_at[:-1]]  # inputs of the first dense layer
    assert len(wiring.layer) == units
    assert sum(map(len, wiring.signal)) == signals
    assert sum(map(len, wiring.context)) == contexts
    found = [size[wiring.layer == layer] for layer in range(len(wiring.grids))]
    assert [(of.min(), of.max()) for of in found] == inputs
    assert parameters(config, wiring) == (weights, readout)


@pytest.mark.parametrize("radius", [2.5, 1e5])
@pytest.mark.parametrize("unit", ["simple", "complex", "residual", "complex_residual"])
def test_the_fewest_parameters_are_no_more_than_there_are(unit, radius):
    common = {"hidden": 6, "lateral_radius": radius, "readout": None}
    shapes = ((5, 4), 3, 1), ((3, 3), (2, 4)), ((2, 4),)
    configs = [Config(grids=grids, unit=unit, **common) for grids in shapes]
    bounds = [fewest(config) / parameters(config, wire(config))[0] for config in configs]
    assert {"simple": 0.8, "complex": 0.45}.get(unit, 0.2) < min(bounds) and max(bounds) <= 1
    flat = Config(grids=((5, 4),), top_to_all=False, two_layers_back=False, **common)
    if unit == "simple" and radius != 2.5:  # of which the whole part counts
        assert fewest(flat) == parameters(flat, wire(flat))[0]


@pytest.mark.parametrize(
    "absurd",
    [
        {"grids": (10**5,)},
        {"hidden": 10**7},
        {"grids": (2, 400)},  # tops, of which each is the context of all
    ],
    ids=lambda fields: " ".join(f"{name} {value}"[:40] for name, value in fields.items()),
)
def test_what_cannot_fit_into_memory_is_refused_before_it_is_made(absurd):
    config = Config(**({"grids": (4, 2), "readout": None} | absurd))
    with pytest.raises(MemoryError, match=r"pvm: found at least [\d,]+ GiB of parameters, expected .* make grids"):
        PVM(config)


def test_where_the_memory_is_over_the_error_says_what_to_do(monkeypatch):
    def none_left(*_: object, **__: object):
        raise MemoryError("Unable to allocate 9 GiB")

    monkeypatch.setattr("hybrid.pvm.model.Pipeline", none_left)
    with pytest.raises(MemoryError, match=r"pvm: found no memory left for the model \(Unable .* expected a smaller"):
        PVM(Config(grids=(4, 2), readout=None))


def test_ranks_may_have_a_machine_each(monkeypatch):
    config = Config(grids=(4, 2), hidden=3, readout=None)
    monkeypatch.setattr(machine, "memory", lambda: 4 * fewest(config) * 10 // 25)  # room for 2 of 5 parts
    refuse_too_large(config, 1, 4, ranks=3)
    with pytest.raises(MemoryError, match="pvm: found at least"):
        refuse_too_large(config, 1, 4, ranks=2)
