"""The Predictive Vision Model of 2016, the one of processes on CPUs, once more in plain NumPy: one unit after another.

It shares no code with the package and is what the fast kernels are judged by, so it is written to be read. All is
float64. A model is made from a configuration file of the original (`config`, values are strings), with the original's
mistakes. Units are of the simple kind; of the others `bench/oracles/pvm.py` is the oracle.

    model = ClassicModel(config)
    model.initialise(np.random.default_rng(0))
    model.frame(pixels, labels, rates)    # pixels uint8 (rows, columns, 3); labels one map a layer; rates one per layer
"""

from collections import deque

import numpy as np

from tests.twins.nets import Net, below, near

# ---------------------------------------------------------------------------------------------------------- who reads whom


class Wiring:
    """Who reads whom, as numbers of units: `signals` (none for layer 0, which reads pixels) and `context`."""

    def __init__(self, config):
        self.shapes = [int(n) for n in config["layer_shapes"]]
        self.base = np.concatenate([[0], np.cumsum(np.square(self.shapes))]).tolist()
        self.places = [(layer, x, y) for layer, n in enumerate(self.shapes) for x in range(n) for y in range(n)]
        size, radius = int(config["fan_in_square_size"]), int(float(config["fan_in_radius"]))
        self.signals = [
            self.ids(layer - 1, below(self.shapes[layer - 1], self.shapes[layer], x, y, size, radius)) if layer else []
            for layer, x, y in self.places
        ]
        self.context = []  # (source, is it feedback) for each unit, in the order of its inputs
        lateral, alone = float(config["lateral_radius"]), config["context_exclude_self"] == "1"
        for layer, x, y in self.places:
            beside = near(self.shapes[layer], x, y, lateral, alone)
            # The original forgets where the layer begins, so the neighbours are units of layer 0 with their numbers.
            self.context.append([(i * self.shapes[layer] + j, False) for i, j in beside])
        for up, (layer, x, y) in enumerate(self.places):
            for source in self.signals[up]:
                self.context[source].append((up, True))
            if layer > 1 and config["send_context_two_layers_back"] == "1":
                low = self.shapes[layer - 2]
                for source in self.ids(layer - 2, below(low, self.shapes[layer], x, y, 2 * size, 2 * radius)):
                    self.context[source].append((up, True))
        if config["last_layer_context_to_all"] == "1":  # also to those that have it as feedback already
            for unit in range(self.base[-2]):
                self.context[unit] += [(top, True) for top in range(self.base[-2], self.base[-1])]

    def ids(self, layer, places):
        return [self.base[layer] + i * self.shapes[layer] + j for i, j in places]


# ------------------------------------------------------------------------------------------------------------- units


FEATURES = {"d": "use_derivative", "i": "use_integral", "e": "use_error", "p": "use_t_minus_2_block"}


class Unit:
    """Features and context -> hidden -> prediction; a readout of the hidden vector.

    A prediction is of all signal blocks at the next frame or, in two steps, at the next and the one after it.
    """

    def __init__(self, config, signals, block, contexts, readout_outputs):
        self.signals, self.block = signals, block  # how many blocks, and how long each is
        self.h = int(config["hidden_block_size"]) ** 2
        on = {name: config[key] == "1" for name, key in FEATURES.items()}
        self.features = ["s", *(name for name in FEATURES if on[name])]
        self.tau, self.momentum = float(config["tau"]), float(config["momentum"])
        self.two_steps, self.normalised = config["predict_two_steps"] == "1", config["normalize_output"] == "1"
        self.predicted = signals * block
        self.before, self.integral, self.taught = np.zeros((3, self.predicted))
        self.lo, self.hi = np.zeros(self.h), np.ones(self.h)  # of each hidden value, not of the vector
        features, outputs = len(self.features) * self.predicted, self.predicted * (1 + self.two_steps)
        self.net = Net([features + contexts * self.h, self.h, outputs])
        self.readout = Net([self.h, 2 * self.h, readout_outputs])
        self.x, self.context = np.zeros(features), np.zeros(contexts * self.h)  # of nothing, not of grey
        self.queue = deque([self.net.nothing()])
        self.published = np.zeros(self.h)

    def predict(self, rate):
        """Stage 0: predict from what the last frame left, say what is in mind."""
        self.record = self.net.forward(np.concatenate([self.x, self.context]))
        self.prediction, hidden = self.record[-1], self.record[-2][:-1]  # without its 1
        self.readout_record = self.readout.forward(hidden)
        self.published = self.publish(hidden, rate)
        if self.two_steps and rate != 0:
            self.queue.append(self.record)

    def publish(self, hidden, rate):
        if not self.normalised:
            return hidden.copy()
        if rate != 0:
            self.lo = np.minimum(hidden, self.lo) + 1e-6
            self.hi = np.maximum(hidden, self.hi) - 1e-6
        return (hidden - self.lo) / (self.hi - self.lo)

    def learn(self, signal, rate, label, readout_rate):
        """Stage 1: see what came, prepare the features of the next prediction, learn from the mistake."""
        guess = np.clip(self.prediction[: self.predicted], 0, 1)
        self.integral = self.tau * self.integral + (1 - self.tau) * signal
        parts = {
            "s": signal,
            "d": (signal - self.before) / 2 + 0.5,
            "i": self.integral,
            "e": (signal - guess) / 2 + 0.5,
            "p": self.before,
        }
        # Block by block, each with all its features.
        stacked = np.stack([parts[name].reshape(self.signals, self.block) for name in self.features], axis=1)
        if rate != 0:
            if self.two_steps:
                # What was predicted a frame ago, of the frame that came then and of this one. A unit that did not
                # learn in between goes on with its last lesson: queue and target both stood still.
                self.train(self.queue.popleft(), np.concatenate([self.taught, signal]), rate)
            else:
                self.train(self.record, signal, rate)
            self.taught = signal
        if readout_rate != 0:
            error = label.ravel() - self.readout_record[-1]
            self.readout.train(self.readout_record, error, readout_rate, self.momentum)
        self.x, self.before = stacked.ravel(), signal

    def train(self, record, target, rate):
        self.net.train(record, target - record[-1], rate, self.momentum)


# ------------------------------------------------------------------------------------------------------------- model


class ClassicModel:
    """A hierarchy of units with a readout each, in three stages a frame."""

    def __init__(self, config):
        self.config, self.wiring = config, Wiring(config)
        self.shapes, self.places = self.wiring.shapes, self.wiring.places
        self.side, self.hidden_side = int(config["input_block_size"]), int(config["hidden_block_size"])
        self.readout_sides = [int(side) for side in config["readout_block_size"]]
        self.depth = int(config["readout_depth"])
        self.units = []
        for u, (layer, _, _) in enumerate(self.places):
            signals, block = (len(self.wiring.signals[u]), self.hidden_side**2) if layer else (1, 3 * self.side**2)
            outputs = self.readout_sides[layer] ** 2 * self.depth
            self.units.append(Unit(config, signals, block, len(self.wiring.context[u]), outputs))
        self.weights = self._flat([unit.net for unit in self.units])
        self.readout_weights = self._flat([unit.readout for unit in self.units])

    @staticmethod
    def _flat(nets):
        """One array for the weights of all nets, one after another."""
        weights = np.zeros(sum(rows * columns for net in nets for rows, columns in net.shapes))
        rest = weights
        for net in nets:
            rest = net.take(rest)
        return weights

    def initialise(self, rng):
        for unit in self.units:
            for net in (unit.net, unit.readout):
                net.initialise(rng)

    def frame(self, pixels, labels=None, rates=(), readout_rate=0.0, lateral=0.0, feedback=0.0):
        """Three stages; each ends for all units before the next begins, so nobody sees another's future.

        `rates`: one for each layer. `labels`: one target map for each layer, needed while the readouts learn.
        """
        for unit, (layer, _, _) in zip(self.units, self.places, strict=True):
            unit.predict(rates[layer])
        image = pixels / 255
        for u, (unit, (layer, x, y)) in enumerate(zip(self.units, self.places, strict=True)):
            if layer == 0:
                signal = cut(image, x, y, self.side).ravel()
            else:
                signal = np.concatenate([self.units[source].published for source in self.wiring.signals[u]])
            label = cut(labels[layer], x, y, self.readout_sides[layer]) if readout_rate != 0 else None
            unit.learn(signal, rates[layer], label, readout_rate)
        for unit, sources in zip(self.units, self.wiring.context, strict=True):
            parts = [(feedback if back else lateral) * self.units[source].published for source, back in sources]
            unit.context = np.concatenate([np.zeros(0), *parts])

    # -------------------------------------------------------------------------------------------------- what is seen

    def prediction(self, layer=0):
        """What `layer` expected of the last frame, within 0..1.

        Layer 0: an image. Above: the picture of the layer below, each block at the place of its source. Who shares a
        source overwrites the others' blocks, so the last unit's are seen.
        """
        side = self.side if layer == 0 else self.hidden_side
        below_side = self.shapes[max(layer - 1, 0)]
        picture = np.zeros((below_side * side, below_side * side) + ((3,) if layer == 0 else ()))
        for u, (unit, place) in enumerate(zip(self.units, self.places, strict=True)):
            if place[0] != layer:
                continue
            blocks = np.clip(unit.prediction[: unit.predicted], 0, 1).reshape(unit.signals, -1)
            sources = [self.places[source] for source in self.wiring.signals[u]] if layer else [place]
            for block, (_, x, y) in zip(blocks, sources, strict=True):
                part = cut(picture, x, y, side)
                part[:] = block.reshape(part.shape)
        return picture

    def state(self, layer):
        """What `layer` published, each unit's as a square at its place."""
        return self._map(layer, lambda unit: unit.published, self.hidden_side, ())

    def heatmap(self, layer):
        """What the readouts of `layer` said in the last frame, before they learned."""
        return self._map(layer, lambda unit: unit.readout_record[-1], self.readout_sides[layer], (self.depth,))

    def _map(self, layer, values, side, depth):
        picture = np.zeros((self.shapes[layer] * side, self.shapes[layer] * side, *depth))
        for unit, (own, x, y) in zip(self.units, self.places, strict=True):
            if own == layer:
                part = cut(picture, x, y, side)
                part[:] = values(unit).reshape(part.shape)
        return picture


def cut(picture, x, y, side):
    """A view of the block (x, y) of a picture of blocks."""
    return picture[x * side : (x + 1) * side, y * side : (y + 1) * side]
