"""Graphs: those of the two rules, and those made by hand."""

import numpy as np
import pytest

from hybrid.pvm.config import Config
from hybrid.pvm.wiring import Unit, custom, receptive, wire

BARE = {"lateral_radius": 0, "self_context": False, "two_layers_back": False, "top_to_all": False, "hidden": 4}


def lists(found):
    return [one.tolist() for one in found]


def small(grids, **fields):
    """A configuration without any context but parents, plus `fields`."""
    return Config(grids=grids, **{**BARE, **fields})


def classic(grids, **fields):
    return small(grids, wiring="classic", features=("signal",), predict_steps=1, **fields)


def test_units_patches_and_places_of_oblong_layers():
    found = wire(small(((2, 3), (1, 2)), block=(4, 5), channels=1))
    assert (found.frame, found.grids) == ((8, 15, 1), ((2, 3), (1, 2)))
    places = [[0] * 6 + [1] * 2, [0, 0, 0, 1, 1, 1, 0, 0], [0, 1, 2, 0, 1, 2, 0, 1]]
    assert lists((found.layer, found.row, found.column)) == places
    assert (found.patch[4], found.patch[6]) == ((4, 5, 4, 5), None)
    assert lists(found.signal) == [[]] * 6 + [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert lists(found.context) == [[6], [6, 7], [7], [6], [6, 7], [7], [], []]
    assert found.signal[0].dtype == found.context[6].dtype == np.int32
    assert found.feedback[1].dtype == np.bool_
    assert found.feedback[1].tolist() == [True, True]


def test_fan_in_keeps_what_is_near_the_centre_of_its_block():
    assert lists(wire(small((3, 1), fan_in=3, fan_in_radius=1)).signal)[9] == [1, 3, 4, 5, 7]
    assert lists(wire(small((3, 1), fan_in=3, fan_in_radius=2)).signal)[9] == list(range(9))
    with pytest.raises(ValueError, match=r"fan_in: found 4 within 0\.8"):
        wire(small((1, 2), fan_in=4, fan_in_radius=0.8))


def graph(**changes):
    """Two units with a patch each, one above that sees both; `changes` of the last one."""
    second = {"layer": 0, "hidden": 2, "patch": [0, 2, 4, 4], "context": [2]}
    last = {"layer": 1, "hidden": 3, "signal": (0, 1), "context": (2, 0), **changes}
    return custom((4, 6, 1), [Unit(0, 2, (0, 0, 4, 3)), second, last])


def test_a_graph_made_by_hand():
    found = graph()
    assert lists((found.layer, found.hidden)) == [[0, 0, 1], [2, 2, 3]]
    assert found.patch == [(0, 0, 4, 3), (0, 2, 4, 4), None]
    assert lists(found.signal) == [[], [], [0, 1]]
    assert lists(found.context) == [[], [2], [2, 0]]
    assert lists(found.feedback) == [[], [True], [False, False]]
    assert (found.frame, found.grids) == ((4, 6, 1), ((2, 1), (1, 1)))
    assert lists(receptive(found)) == [[0, 2], [1, 2]]
    assert lists(graph(feedback=(True, False)).feedback)[2] == [True, False]
    loop = [Unit(0, 1, (0, 0, 1, 1), signal=(1,)), Unit(0, 1, signal=(0,)), Unit(0, 1, (0, 0, 1, 1))]
    assert lists(receptive(custom((1, 1, 1), loop))) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"signal": (0, 3)}, r"units\[2\].signal\[1\]: found 3, expected a whole number from 0 to 2"),
        ({"context": (-1,)}, r"units\[2\].context\[0\]: found -1"),
        ({"signal": ()}, r"units\[2\]: found no patch and no signal"),
        ({"patch": (0, 3, 4, 4)}, r"units\[2\].patch: found rows 0 to 4 and columns 3 to 7, expected within 4 x 6"),
        ({"patch": (0, 0, 0, 1)}, r"units\[2\].patch\[2\]: found 0"),
        ({"patch": (0, 0, 1)}, r"units\[2\].patch: found \(0, 0, 1\), expected \(row"),
        ({"feedback": (True,)}, r"units\[2\].feedback: found 1, expected 2"),
        ({"layer": 2}, r"units\[2\].layer: found 2 after 0, expected 0 or 1; order the units"),
        ({"hidden": 0}, r"units\[2\].hidden: found 0"),
        ({"row": -1}, r"units\[2\].row: found -1"),
        ({"hiden": 3}, r"units\[2\]: found 'hiden', expected layer and hidden"),
    ],
)
def test_graphs_that_cannot_work_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        graph(**changes)


def test_graphs_without_a_beginning_are_refused():
    patch = (0, 0, 1, 1)
    for frame, units, message in [
        ((1, 1, 1), [], "units: found none"),
        ((1, 1, 1), [Unit(1, 1, patch)], "found 1, expected 0; layers"),
        ((1, 1, 1), [{"layer": 0}], "found no 'hidden'"),
        ((1, 1), [Unit(0, 1, patch)], "frame: found"),
        ((1, 0, 1), [Unit(0, 1, patch)], "frame columns: found 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            custom(frame, units)
