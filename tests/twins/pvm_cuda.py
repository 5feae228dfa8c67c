"""The Predictive Vision Model of 2017-23, the one with CUDA kernels, once more in plain NumPy: one unit after another.

It shares no code with the package and is what the fast kernels are judged by, so it is written to be read. A model is
made from a configuration file of the original (`config`, values are strings) and has the original's memory: flat arrays
of all units in one order, into which each unit holds views. `dtype` is that of what is computed; what comes from outside
is float32 as in the original, whatever `dtype` is: pixels and labels up to their squeeze, rates and momentum.

    model = CudaModel(config, np.float64)
    model.initialise(np.random.default_rng(0))
    model.frame(image, label)              # image in 0..1 (rows, columns, channels), label in 0..1 (rows, columns)
    model.frame(model.prediction(), learn=False)                                            # a dream
"""

from dataclasses import dataclass, field

import numpy as np

from tests.twins.nets import below, logistic, logistic_slope, near, rational, rational_slope_2023

SLOTS = 3  # a prediction made at frame t is of frames t + 1 and t + 2: so long its activations are kept


def squeeze(v):
    """0..1 -> 0.1..0.9: what an activation reaches with weights that are not infinite."""
    return v * v.dtype.type(0.8) + v.dtype.type(0.1)


# ---------------------------------------------------------------------------------------------------------- who reads whom


@dataclass
class Unit:
    """A place in the hierarchy, and what it is connected to, as numbers of units."""

    id: int
    layer: int
    x: int  # image rows: block x of its grid
    y: int
    primary: list = field(default_factory=list)  # whose hidden values it predicts; layer 0 predicts pixels
    context: list = field(default_factory=list)  # whose hidden values it knows besides
    xs: list = field(default_factory=list)  # rows and columns of layer 0 that it looks at, through others
    ys: list = field(default_factory=list)


def grid(shapes):
    """Units of all layers, and where each layer's begin."""
    base = np.concatenate([[0], np.cumsum(np.square(shapes))]).tolist()
    units = [
        Unit(base[layer] + x * n + y, layer, x, y) for layer, n in enumerate(shapes) for x in range(n) for y in range(n)
    ]
    return units, base


def wire(config):
    """Units with their lists, in the order in which their inputs lie."""
    shapes = [int(n) for n in config["layer_shapes"]]
    units, base = grid(shapes)
    for unit in units:
        n = shapes[unit.layer]
        # The original cuts the radius first, so 1.5 does not reach the diagonal.
        beside = near(n, unit.x, unit.y, int(float(config["lateral_radius"])), config["context_exclude_self"] == "1")
        unit.context = [base[unit.layer] + i * n + j for i, j in beside]
        if unit.layer == 0:
            unit.xs, unit.ys = [unit.x], [unit.y]
            continue
        low = shapes[unit.layer - 1]
        size, radius = int(config["fan_in_square_size"]), float(config["fan_in_radius"])
        sources = set(below(low, n, unit.x, unit.y, size, radius))
        unit.primary = sorted(base[unit.layer - 1] + i * low + j for i, j in sources)
        unit.xs = sorted({x for source in unit.primary for x in units[source].xs})
        unit.ys = sorted({y for source in unit.primary for y in units[source].ys})
    parents = [[up.id for up in units if unit.id in up.primary] for unit in units]
    for unit in units:
        unit.context += parents[unit.id]
        if config["send_context_two_layers_back"] == "1":  # once for each way up, so often more than once
            unit.context += [grand for parent in parents[unit.id] for grand in parents[parent]]
    if config["last_layer_context_to_all"] == "1":
        for top in units[base[-2] :]:
            for unit in units:
                if top.id not in unit.context:
                    unit.context.append(top.id)
    return units


# ----------------------------------------------------------------------------------------------------------- readout


class Readout:
    """One MLP for each unit of layer 0: everything that looks at its pixels in, a map of these pixels out."""

    def __init__(self, units, tiles, block, hidden, momentum, dtype):
        self.block, self.dtype, self.momentum = block, dtype, dtype(np.float32(momentum))
        self.tiles = [(x, y) for x in range(tiles) for y in range(tiles)]
        self.sources = [[u.id for u in units if x in u.xs and y in u.ys] for x, y in self.tiles]
        self.hidden, self.outputs, self.units = hidden, block * block, units

    def allocate(self, sizes):
        """`sizes`: hidden values of each unit. Weights are flat; each tile has views."""
        self.sizes = [sum(sizes[u] for u in sources) for sources in self.sources]
        self.w0_at = np.concatenate([[0], np.cumsum([self.hidden * (n + 1) for n in self.sizes])])
        self.w1_at = np.arange(len(self.tiles) + 1) * self.outputs * (self.hidden + 1)
        self.w0, self.w1 = np.zeros(self.w0_at[-1], self.dtype), np.zeros(self.w1_at[-1], self.dtype)
        self.v0, self.v1 = np.zeros_like(self.w0), np.zeros_like(self.w1)

    def matrices(self, i, w0, w1):
        first = w0[self.w0_at[i] : self.w0_at[i + 1]].reshape(self.hidden, -1)
        return first, w1[self.w1_at[i] : self.w1_at[i + 1]].reshape(self.outputs, -1)

    def initialise(self, rng):
        """Uniform, over the root of the number of *outputs* less 0.9: as the original has it."""
        self.w0[:] = rng.uniform(-1, 1, self.w0.size) / np.sqrt(self.hidden - 0.9)
        self.w1[:] = rng.uniform(-1, 1, self.w1.size) / np.sqrt(self.outputs - 0.9)

    def forward(self, hidden):
        """`hidden`: one vector for each unit, as it is (not squeezed). Keeps the activations for `train`."""
        one = np.ones(1, self.dtype)
        self.x = [np.concatenate([*(hidden[u] for u in sources), one]) for sources in self.sources]
        self.z, self.y = [], []
        for i, x in enumerate(self.x):
            first, second = self.matrices(i, self.w0, self.w1)
            self.z.append(np.concatenate([logistic(first @ x), one]))
            self.y.append(logistic(second @ self.z[i]))
        return self.image(self.y)

    def train(self, target, rate):
        """`target` as an image, squeezed. The activation is always logistic."""
        for i, (x, y) in enumerate(self.tiles):
            first, second = self.matrices(i, self.w0, self.w1)
            v0, v1 = self.matrices(i, self.v0, self.v1)
            wanted = target[x * self.block : (x + 1) * self.block, y * self.block : (y + 1) * self.block].ravel()
            delta = logistic_slope(self.y[i]) * (wanted - self.y[i])
            inner = (logistic_slope(self.z[i]) * (second.T @ delta))[: self.hidden]
            v1[:] = self.momentum * v1 + rate * np.outer(delta, self.z[i])
            v0[:] = self.momentum * v0 + rate * np.outer(inner, self.x[i])
            second += v1
            first += v0

    def image(self, parts):
        side = self.block * (self.tiles[-1][0] + 1)
        picture = np.empty((side, side), self.dtype)
        for (x, y), part in zip(self.tiles, parts, strict=True):
            rows, columns = slice(x * self.block, (x + 1) * self.block), slice(y * self.block, (y + 1) * self.block)
            picture[rows, columns] = part.reshape(self.block, self.block)
        return picture


# ------------------------------------------------------------------------------------------------------------- model


class CudaModel:
    """Units that predict their next two inputs from their last two, and what others have in mind."""

    def __init__(self, config, dtype=np.float64, readout_hidden=100):
        self.config, self.dtype = config, np.dtype(dtype).type
        self.units = wire(config)
        self.layers, self.side = len(config["layer_shapes"]), int(config["layer_shapes"][0])
        self.block, self.channels = int(config["input_block_size"]), int(config.get("input_channels", 3))
        self.h = int(config["hidden_block_size"]) ** 2
        self.feeds_context = config["feed_context_in_complex_layer"] == "1"
        self.activate, self.slope = logistic, logistic_slope
        if config["polynomial"] == "1":
            self.activate, self.slope = rational, rational_slope_2023
        self.step = 0
        self._allocate()
        units, momentum = self.units, float(config["momentum"])
        self.readout = Readout(units, self.side, self.block, readout_hidden, momentum, self.dtype)
        self.readout.allocate([self.h] * len(units))
        self.readout_rate = np.float32(0.01)

    def _allocate(self):
        """Sizes of each unit, and the flat arrays."""
        units, h = self.units, self.h
        pixels = self.block**2 * self.channels
        self.primary_dim = [h * len(u.primary) if u.layer else pixels for u in units]
        self.context_dim = [h * len(u.context) for u in units]
        self.output_dim = [2 * p for p in self.primary_dim]
        self.input_dim = [2 * p + c for p, c in zip(self.primary_dim, self.context_dim, strict=True)]
        self.hidden_dim = [h + 1 + c * self.feeds_context for c in self.context_dim]  # the 1 stands at place h
        self.x_at = np.concatenate([[0], np.cumsum(np.array(self.input_dim) + 1)])  # a 1 at the end of each
        self.z_at = np.concatenate([[0], np.cumsum(self.hidden_dim)])
        # All first matrices unit by unit, then all second ones; the bias is a column: the last, and number h.
        first = [h * (d + 1) for d in self.input_dim]
        second = [o * z for o, z in zip(self.output_dim, self.hidden_dim, strict=True)]
        at = np.concatenate([[0], np.cumsum(first + second)])
        self.w0_at, self.w1_at = at[: len(units)], at[len(units) : -1]
        self.weights, self.velocity = np.zeros(at[-1], self.dtype), np.zeros(at[-1], self.dtype)
        # Nobody clears them before the first frame: what was never computed is 1.
        self.input, self.output = np.ones((2, SLOTS, self.x_at[-1]), self.dtype)
        self.hidden = np.ones((SLOTS, self.z_at[-1]), self.dtype)
        self.out_error = np.zeros((SLOTS, self.x_at[-1]), self.dtype)
        self.rate, self.momentum = np.zeros((2, len(units)), np.float32)

    def initialise(self, rng):
        self.weights[:] = 0.03 * (rng.random(self.weights.size) - 0.5)
        self.readout.initialise(rng)

    def outer(self, array, u):
        """Unit u's part of a slot of inputs or outputs."""
        return array[self.x_at[u] : self.x_at[u + 1]]

    def inner(self, array, u):
        """Unit u's part of a slot of hidden values: h of them, a 1, then copies of the context if it is fed here."""
        return array[self.z_at[u] : self.z_at[u + 1]]

    def activations(self, slot, u):
        """Unit u's inputs, hidden values and outputs of a slot."""
        x, y = (self.outer(array[slot], u) for array in (self.input, self.output))
        return x, self.inner(self.hidden[slot], u), y

    def matrices(self, array, u):
        """Unit u's two matrices, of weights or of velocities."""
        columns, rows, inner = self.input_dim[u] + 1, self.output_dim[u], self.hidden_dim[u]
        first = array[self.w0_at[u] :][: self.h * columns].reshape(self.h, columns)
        return first, array[self.w1_at[u] :][: rows * inner].reshape(rows, inner)

    def patch(self, u):
        """Rows and columns of the frame that a unit of layer 0 sees."""
        x, y, b = self.units[u].x, self.units[u].y, self.block
        return slice(x * b, (x + 1) * b), slice(y * b, (y + 1) * b)

    # ------------------------------------------------------------------------------------------------------ a frame

    def frame(self, image, label=None, learn=True):
        """One frame in the original's order. A map is learned only where there is a label, and late enough."""
        self.set_rates()
        self.frame_in = squeeze(np.asarray(image, np.float32))  # a dream's pixels are rounded on their way too
        self.push()
        self.forward()
        now = self.hidden[self.step % SLOTS]
        self.heatmap = self.readout.forward([self.inner(now, u)[: self.h] for u in range(len(self.units))])
        self.readout_trained = label is not None and self.step > int(self.config["delay_intermediate_learning_rate"])
        if self.readout_trained:
            self.readout.train(squeeze(np.asarray(label, np.float32)), self.dtype(self.readout_rate))
        if learn:
            self.backward()
        self.step += 1

    def set_rates(self):
        """Layers begin one after another; of two switches at one step the intermediate wins, being looked at last."""
        config, layers = self.config, np.array([u.layer for u in self.units])
        for layer in range(self.layers):
            if self.step == int(config["delay_each_layer_learning"]) * layer:
                self.rate[layers == layer] = float(config["initial_learning_rate"])
                self.momentum[layers == layer] = float(config["momentum"])
        for name in ("final", "intermediate"):
            if self.step == int(config[f"delay_{name}_learning_rate"]):
                rate = float(config[f"{name}_learning_rate"])
                self.rate[:] = rate
                self.readout_rate = np.float32(float(config.get("readout_multiplier", 10)) * rate)

    def push(self):
        """Inputs of this frame: what is seen now, what was seen before, what others had in mind before."""
        x_now, x_before = self.input[self.step % SLOTS], self.input[(self.step - 1) % SLOTS]
        z_now, z_before = self.hidden[self.step % SLOTS], self.hidden[(self.step - 1) % SLOTS]
        minds = [self.inner(z_before, u)[: self.h] for u in range(len(self.units))]
        for u, unit in enumerate(self.units):
            p = self.primary_dim[u]
            x = self.outer(x_now, u)
            x[p : 2 * p] = self.outer(x_before, u)[:p]
            if unit.layer == 0:
                x[:p] = self.frame_in[self.patch(u)].ravel()  # row, column, channel
            else:
                x[:p] = squeeze(np.concatenate([minds[source] for source in unit.primary]))
            x[-1] = 1
            if unit.context:
                context = np.concatenate([minds[source] for source in unit.context])
                x[2 * p : -1] = squeeze(context)
                if self.feeds_context:
                    self.inner(z_now, u)[self.h + 1 :] = context  # here it is not squeezed

    def forward(self):
        for u in range(len(self.units)):
            first, second = self.matrices(self.weights, u)
            x, z, y = self.activations(self.step % SLOTS, u)
            z[: self.h] = self.activate(first @ x)
            z[self.h] = 1
            o = self.output_dim[u]
            y[:o] = self.activate(second @ z)
            y[o:] = 0  # outputs are laid out like inputs: the rest means nothing, but the original writes a bias there
            y[o] = 1

    def backward(self):
        """Judge what was predicted two frames ago by what came; with the weights of now, so not quite a gradient."""
        now, then = self.step % SLOTS, (self.step - 2) % SLOTS
        for u in range(len(self.units)):
            first, second = self.matrices(self.weights, u)
            v0, v1 = self.matrices(self.velocity, u)
            rate, momentum, o = self.dtype(self.rate[u]), self.dtype(self.momentum[u]), self.output_dim[u]
            x, z, y = self.activations(then, u)
            error = self.outer(self.out_error[then], u)
            error[:] = self.outer(self.input[now], u) - y  # the target: what is seen now, and before; then leftovers
            delta = self.slope(y[:o]) * error[:o]
            z_delta = self.slope(z) * (second.T @ delta)
            # Both gradients are taken before either matrix moves.
            v1[:] = momentum * v1 + rate * np.outer(delta, z)
            v0[:] = momentum * v0 + rate * np.outer(z_delta[: self.h], x)
            second += v1
            first += v0

    # -------------------------------------------------------------------------------------------------- what is seen

    def prediction(self):
        """What the last frame's outputs say the next frame is: an image in 0.1..0.9, also what a dream is fed."""
        y = self.output[(self.step - 1) % SLOTS]
        side = self.side * self.block
        picture = np.empty((side, side, self.channels), self.dtype)
        for u, unit in enumerate(self.units):
            if unit.layer == 0:
                picture[self.patch(u)] = self.outer(y, u)[: self.primary_dim[u]].reshape(self.block, self.block, -1)
        return picture

    def mean_abs_error(self):
        """Over the outputs of all units, of the errors that the last frame found."""
        errors = self.out_error[(self.step - 3) % SLOTS]
        parts = [self.outer(errors, u)[: self.output_dim[u]] for u in range(len(self.units))]
        return float(np.mean(abs(np.concatenate(parts)), dtype=np.float64))
