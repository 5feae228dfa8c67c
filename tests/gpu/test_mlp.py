"""Layers of an MLP on the device, against the oracle that the CPU is held to as well, and the same dropout masks."""

import numpy as np
import pytest

from bench.oracles.units import close
from cpu import mlp as cpu_mlp
from gpu import mlp
from tests.support import layers
from tests.support.layers import KINDS

# batch, inputs, outputs: less than a warp, several columns a thread, several rows a block
SIZES = [(1, 3, 5), (7, 33, 40), (5, 20, 300), (300, 6, 9)]
KEY = 2**63 - 12345


class Case:
    """Random arrays of one layer, which does not begin the weights: on the host and on the device."""

    def __init__(self, gpu, kind, batch, inputs, outputs):
        rng = np.random.default_rng([batch, inputs])
        self.gpu, self.layer = gpu, layers.layer(kind, inputs, outputs, at=3)
        many = 3 + layers.size(self.layer)
        self.host = {
            "weights": rng.normal(0, 0.3, many),
            "weight_grad": np.ones(many),
            "x": rng.normal(size=(batch, self.layer.inputs)),
            "out_grad": rng.normal(size=(batch, outputs)),
        }
        self.host = {name: array.astype(np.float32) for name, array in self.host.items()}
        self.there = {name: gpu.put(array) for name, array in self.host.items()}
        self.there["x_grad"] = gpu.empty((batch, self.layer.inputs), np.float32)
        self.out = gpu.empty((batch, outputs), np.float32)
        self.work = gpu.run(mlp.workspace, outputs + 2, np.float32)

    def forward(self, key=KEY):
        self.gpu.run(mlp.forward, self.out, self.layer, self.there["weights"], self.there["x"], key)
        return self.gpu.get(self.out)

    def backward(self, x_grad=True, key=KEY):
        names = ("weight_grad", "out_grad", "weights", "x")
        weight_grad, out_grad, weights, x = (self.there[name] for name in names)
        written = (self.there["x_grad"] if x_grad else None, weight_grad, out_grad, self.work)
        self.gpu.run(mlp.backward, *written, self.layer, weights, self.out, x, key)
        return self.gpu.get(weight_grad)


@pytest.mark.parametrize(
    ("kind", "sizes"), [*((kind, SIZES[n % 4]) for n, kind in enumerate(KINDS)), *(("dropout", size) for size in SIZES)]
)
def test_forward_and_backward(gpu, kind, sizes):
    case = Case(gpu, kind, *sizes)
    weights, x, out_grad = (case.host[name] for name in ("weights", "x", "out_grad"))
    expected = layers.forward(case.layer, weights, x, KEY)
    close(case.forward(), expected, np.float32, 64)
    x_grad, weight_grad = layers.backward(case.layer, weights, x, out_grad.astype(float), KEY)
    close(case.backward(), 1 + weight_grad, np.float32, 64 * len(x))
    close(gpu.get(case.there["x_grad"]), x_grad, np.float32, 256)


@pytest.mark.parametrize("kind", ["plain", "dropout"])
def test_the_gradient_of_the_input_can_be_left_out(gpu, kind):
    found = []
    for x_grad in (True, False):
        case = Case(gpu, kind, 7, 33, 40)
        case.forward()
        found.append(case.backward(x_grad).tobytes())
    assert found[0] == found[1]


def test_masks_are_those_of_the_cpu(gpu):
    case = Case(gpu, "dropout", 300, 6, 9)
    out = case.forward(12345)
    expected = np.empty((300, 9), np.float32)
    cpu_mlp.forward(expected, case.layer, case.host["weights"], case.host["x"], 12345)
    assert ((out == 0) == (expected == 0)).all()


@pytest.mark.parametrize(("outputs", "threads"), [(1, 32), (32, 32), (33, 64), (256, 256), (300, 256)])
def test_a_block_has_as_many_warps_as_columns_up_to_256(gpu, launched, outputs, threads):
    Case(gpu, "plain", 7, 5, outputs).forward()
    assert launched == {"finish": (7, threads)}


@pytest.mark.parametrize(("batch", "pieces"), [(63, 63), (65, 64), (1040, 65), (5000, 256)])
def test_a_batch_goes_back_in_64_to_256_pieces_of_16_rows(gpu, launched, batch, pieces):
    case = Case(gpu, "plain", batch, 2, 3)
    case.forward()
    case.backward()
    assert launched["fall"] == (pieces, 32) and launched["collect"] == (1, 256)


@pytest.mark.parametrize("kind", ["plain", "dropout without bias"])
def test_without_a_key_nothing_is_dropped(gpu, kind):
    case = Case(gpu, kind, 7, 33, 40)
    weights, x, out_grad = (case.host[name] for name in ("weights", "x", "out_grad"))
    close(case.forward(None), layers.forward(case.layer, weights, x, None), np.float32, 64)
    expected = layers.backward(case.layer, weights, x, out_grad.astype(float), None)[1]
    close(case.backward(key=None), 1 + expected, np.float32, 64 * len(x))
