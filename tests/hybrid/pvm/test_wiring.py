"""Graphs made by hand: what they become, and which are refused."""

import pytest

from hybrid.pvm.wiring import Unit, custom, receptive


def lists(found):
    return [one.tolist() for one in found]


def graph(**changes):
    """Two units with a patch each, one above that sees both; `changes` of the last one."""
    last = {"layer": 1, "hidden": 3, "signal": (0, 1), "context": (2, 0), **changes}
    return custom(
        (4, 6, 1), [Unit(0, 2, (0, 0, 4, 3)), {"layer": 0, "hidden": 2, "patch": [0, 2, 4, 4], "context": [2]}, last]
    )


def test_a_graph_made_by_hand():
    found = graph()
    assert found.layer.tolist() == [0, 0, 1]
    assert found.hidden.tolist() == [2, 2, 3]
    assert found.patch == [(0, 0, 4, 3), (0, 2, 4, 4), None]
    assert lists(found.signal) == [[], [], [0, 1]]
    assert lists(found.context) == [[], [2], [2, 0]]
    assert lists(found.feedback) == [[], [True], [False, False]]
    assert found.grids == ((2, 1), (1, 1))
    assert found.frame == (4, 6, 1)
    assert lists(receptive(found)) == [[0, 2], [1, 2]]
    assert lists(graph(feedback=(True, False)).feedback)[2] == [True, False]


def test_receptive_fields_go_round_loops():
    units = [Unit(0, 1, (0, 0, 1, 1), signal=(1,)), Unit(0, 1, signal=(0,)), Unit(0, 1, (0, 0, 1, 1))]
    assert lists(receptive(custom((1, 1, 1), units))) == [[0, 1], [2]]


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
