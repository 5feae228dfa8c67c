"""Who reads whom in the Predictive Vision Model of 2017-23, by the rules of its configuration."""

from dataclasses import dataclass, field

import numpy as np


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


def laterals(n, x, y, radius, exclude_self):
    """Places of an n x n grid within `radius` of (x, y)."""
    return [
        (i, j)
        for i in range(n)
        for j in range(n)
        if (i - x) ** 2 + (j - y) ** 2 <= radius * radius and not (exclude_self and (i, j) == (x, y))
    ]


def fan_in(n_low, n_up, x, y, size, radius):
    """Places of an n_low x n_low grid that (x, y) of the n_up x n_up grid above looks at: a set."""

    def place(at, offset):
        begin = (n_low - size) / (n_up - 1) * at if n_up > 1 else (n_low - size) / 2
        return int(begin + offset)

    centre = (size - 1) / 2
    offsets = [(i, j) for i in range(size) for j in range(size)]
    block = {(place(x, i), place(y, j)) for i, j in offsets if (i - centre) ** 2 + (j - centre) ** 2 <= radius * radius}
    return {(i, j) for i, j in block if 0 <= i < n_low and 0 <= j < n_low}


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
        near = laterals(n, unit.x, unit.y, int(float(config["lateral_radius"])), config["context_exclude_self"] == "1")
        unit.context = [base[unit.layer] + i * n + j for i, j in near]
        if unit.layer == 0:
            unit.xs, unit.ys = [unit.x], [unit.y]
            continue
        low = shapes[unit.layer - 1]
        size, radius = int(config["fan_in_square_size"]), float(config["fan_in_radius"])
        below = fan_in(low, n, unit.x, unit.y, size, radius)
        unit.primary = sorted(base[unit.layer - 1] + i * low + j for i, j in below)
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
