"""A tick of five unlike units, and the CPU's answer; that of the oracle is `expected` of bench/oracles/pvm.py."""

import numpy as np

from bench.oracles.pvm import WRITTEN, arguments, drawn
from cpu import pvm
from hybrid.pvm.config import Config
from hybrid.pvm.layout import FEATURES, tape_layout
from hybrid.pvm.wiring import custom

# Odd sizes, units without context, with overlapping patches, with a patch and a signal, sources of unequal sizes.
UNITS = (
    {"layer": 0, "hidden": 3, "patch": (0, 0, 2, 3), "context": (1, 4, 0), "feedback": (False, True, False)},
    {"layer": 0, "hidden": 5, "patch": (1, 2, 3, 5)},
    {"layer": 0, "hidden": 1, "patch": (4, 6, 1, 1), "context": (0, 1, 3)},
    {"layer": 1, "hidden": 9, "signal": (0, 1), "context": (4, 4, 2)},
    {"layer": 1, "hidden": 2, "patch": (0, 0, 1, 2), "signal": (2,), "context": (3,)},
)
FRAME = (5, 7, 2)
ALL = {"wiring": "classic", "features": FEATURES}
TWO = {"wiring": "classic", "features": ("signal", "past"), "predict_steps": 2}
KINDS = {
    "simple, newest first": {"activation": "rational"},
    "simple, context twice": {"context_to_output": True, "activation": "logistic"},
    "all features": {**ALL, "predict_steps": 1, "activation": "logistic"},
    "all features, two steps": {**ALL, "predict_steps": 2, "activation": "tanh"},
    "complex": {**ALL, "unit": "complex", "predict_steps": 1, "activation": "rational"},
    "complex, context later": {**TWO, "unit": "complex", "context_to_output": True, "activation": "logistic"},
    "residual": {**TWO, "unit": "residual", "activation": "rational"},
    "complex residual": {**TWO, "unit": "complex_residual", "activation": "logistic"},
    "change": {**ALL, "unit": "change", "predict_steps": 1, "activation": "tanh"},
    "sign of the error": {"sign_of_error": True},
}
# Without momentum, and published as it is; a kernel is compiled for either.
PLAIN = {"low": None, "high": None, "velocity": None, "momentum": np.zeros(len(UNITS))}


def case(kind, streams=1):
    """`drawn` of the five units of a kind."""
    config = Config(grids=((3, 1), (2, 1)), hidden=(3, 2), readout=None, **KINDS[kind])
    layout, first = tape_layout(custom(FRAME, UNITS), config), config.wiring == "cuda"
    return drawn(layout, streams) | {"predict_first": first, "activation": config.activation}


def tick(made):
    """The arrays afterwards; those of `made` stay as they are."""
    own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in made.items()}
    pvm.tick(*arguments(**own))
    return own


def assert_close(found, expected):
    for name in WRITTEN:
        if name != "delta" and expected[name] is not None:
            np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12, err_msg=name)
    layout = expected["layout"]
    for u in np.flatnonzero(expected["learns"]):
        guessed = layout.predicted_at[u] == layout.features_at[u]  # no layer wrote it: what is there is read by nothing
        part = slice(layout.hidden_at[u] if guessed else layout.tape_at[u], layout.tape_at[u + 1])
        np.testing.assert_allclose(found["delta"][:, part], expected["delta"][:, part], rtol=0, atol=1e-12)
