"""What a tick gives its caller."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.pvm.result import Results, StepResult, by_layer
from hybrid.pvm.wiring import Unit, custom


def result(**changes):
    return StepResult(3, np.array([0.1, 0.3]), None, [], [])._replace(**changes)


@pytest.mark.parametrize("streams", [1, 3])
def test_errors_are_means_of_all_that_a_layer_predicts(streams):
    layout = SimpleNamespace(signal_at=np.array([0, 4, 6, 16]), steps=2)
    wiring = SimpleNamespace(layer=np.array([0, 0, 1]))
    results = Results(wiring, layout, None, None, streams)
    slot = SimpleNamespace(miss=np.array([6.0, 3.0, 5.0]) * streams, complete=False, tick=4)
    assert results.of(slot).error.tolist() == [9 / 12, 5 / 20]


def test_hidden_numbers_by_layer_and_layers_of_units_that_differ_in_one_row():
    wiring = custom(
        (2, 4, 1),
        [
            Unit(0, 2, patch=(0, 0, 2, 2)),
            Unit(0, 2, patch=(0, 2, 2, 2)),
            Unit(1, 1, signal=(0,)),
            Unit(1, 3, signal=(1,)),
        ],
    )
    first, second = by_layer(np.arange(8)[None], wiring)
    assert first.tolist() == [[[0, 1], [2, 3]]] and second.tolist() == [[[4, 5, 6, 7]]]
