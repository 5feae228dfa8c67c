"""Layers of an MLP on the device, against the oracle that the CPU is held to as well, and the same dropout masks."""

import pytest

from tests.support.host import HOST
from tests.support.layers import KINDS, Case

# batch, inputs, outputs: less than a warp, several columns a thread, several rows a block
SIZES = [(1, 3, 5), (7, 33, 40), (5, 20, 300), (300, 6, 9)]


@pytest.mark.parametrize(
    ("kind", "sizes"), [*((kind, SIZES[n % 4]) for n, kind in enumerate(KINDS)), *(("dropout", size) for size in SIZES)]
)
def test_forward_and_backward(gpu, kind, sizes):
    Case(gpu, kind, *sizes).check()


@pytest.mark.parametrize("kind", ["plain", "dropout"])
def test_the_gradient_of_the_input_can_be_left_out(gpu, kind):
    found = []
    for x_grad in (True, False):
        case = Case(gpu, kind, 7, 33, 40)
        case.forward()
        found.append(case.backward(x_grad=x_grad).tobytes())
    assert found[0] == found[1]


def test_masks_are_those_of_the_cpu(gpu):
    out, expected = (Case(place, "dropout", 300, 6, 9).forward(12345) for place in (gpu, HOST))
    assert ((out == 0) == (expected == 0)).all()


@pytest.mark.parametrize(("batch", "pieces"), [(63, 63), (65, 64), (1040, 65), (5000, 256)])
def test_a_batch_goes_back_in_64_to_256_pieces_of_16_rows(gpu, launched, batch, pieces):
    case = Case(gpu, "plain", batch, 2, 3)
    case.forward()
    case.backward()
    assert launched["fall"] == (pieces, 32) and launched["sum_columns"] == (1, 256)


@pytest.mark.parametrize("kind", ["plain", "dropout without bias"])
def test_without_a_key_nothing_is_dropped(gpu, kind):
    Case(gpu, kind, 7, 33, 40).check(None)
