"""Conversion of configuration files of the two originals; notes list missing and ignored options."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from ..config import FEATURES, Config, Event, Readout

# The defaults of omitted options.
DEFAULTS: dict[str, Any] = {
    "input_block_size": 5, "hidden_block_size": 5, "lateral_radius": 1.5, "context_exclude_self": 0,
    "fan_in_square_size": 2, "fan_in_radius": 2, "send_context_two_layers_back": 0, "last_layer_context_to_all": 1,
    "feed_context_in_complex_layer": 0, "polynomial": 0, "unit_type": "simple", "ex_module": "PVM_models.PVM_unit_v1",
    "momentum": 0.5, "initial_learning_rate": 0.0003, "delay_each_layer_learning": 100_000,
    "final_learning_rate": 0.0001, "delay_final_learning_rate": 100_000,
    "enable_lateral_at": 900_000, "enable_feedback_at": 900_000, "disable_lateral": 0, "disable_feedback": 0,
    "use_derivative": 1, "use_integral": 1, "use_error": 1, "use_t_minus_2_block": 0, "predict_two_steps": 0,
    "normalize_output": 0, "tau": 0.98, "readout_depth": 1, "supervised": 0, "supervised_rate": 0.0002,
}  # fmt: skip
# Options of the CUDA implementation that most of its files omit.
CUDA_ONLY: dict[str, Any] = {
    "delay_intermediate_learning_rate": None, "intermediate_learning_rate": None, "input_channels": 3,
    "ignore_depth": 0, "opt_abs_diff": 0, "readout_multiplier": 10, "4_layer_readout": 0,
}  # fmt: skip
# Switches of features besides the signal, in the order of FEATURES.
FEATURED = ("use_derivative", "use_integral", "use_error", "use_t_minus_2_block")
MISSING = (  # switches without a counterpart in our configuration
    "stereo", "only_one_channel", "autoencoder", "bias_free", "bias_free_readout", "bias_free_additional",
    "use_global_backprop", "ignore_depth",
)  # fmt: skip


def recognised(fields: Mapping[str, Any]) -> bool:
    """True if these are the field names of an original's file."""
    return bool({"layer_shapes", "input_block_size", "hidden_block_size", "fan_in_square_size"} & set(fields))


def read(fields: Mapping[str, Any], name: str = "original", *, wiring: str | None = None) -> tuple[Config, list[str]]:
    """Returns our configuration of an original's file, and a one-line note for each missing or ignored option.

    wiring  "cuda" or "classic"; None: detected, since both originals have files with the same names. It is "cuda" if the file
            has options of the CUDA implementation alone, or requests two frames in and two out of a simple unit, the only case
            of that implementation
    """
    rule = wiring or _rule(fields)
    keys = _Keys(fields)
    shape: dict[str, Any] = {
        "grids": keys.wholes("layer_shapes"),
        "block": keys.whole("input_block_size"),
        "hidden": keys.whole("hidden_block_size") ** 2,
        "fan_in": keys.whole("fan_in_square_size"),
        "fan_in_radius": keys.number("fan_in_radius"),
        "lateral_radius": keys.number("lateral_radius"),
        "self_context": not keys.flag("context_exclude_self"),
        "two_layers_back": keys.flag("send_context_two_layers_back"),
        "top_to_all": keys.flag("last_layer_context_to_all"),
        "activation": "rational" if keys.flag("polynomial") else "logistic",
    }
    how = (_cuda if rule == "cuda" else _classic)(keys, len(shape["grids"]))
    config = Config(name=name, wiring=rule, **{**shape, **how})
    for one in fields:
        if one not in keys.used:
            on = one in MISSING and _whole(one, fields[one]) != 0
            keys.notes.append(f"{one}: ignored" + ", though on: not available here" * on)
    return config, keys.notes


class _Keys:
    """The values of a file, mostly quoted numbers; records the names read, and notes on missing ones."""

    def __init__(self, fields: Mapping[str, Any]):
        self.fields = fields
        self.used: set[str] = set()
        self.notes: list[str] = []

    def word(self, name: str) -> Any:
        self.used.add(name)
        if name in self.fields:
            return self.fields[name]
        if name in CUDA_ONLY:
            return CUDA_ONLY[name]
        self.notes.append(f"{name}: missing, {DEFAULTS[name]} taken")
        return DEFAULTS[name]

    def number(self, name: str) -> float:
        return _number(name, self.word(name))

    def whole(self, name: str) -> int:
        return _whole(name, self.word(name))

    def flag(self, name: str) -> bool:
        return _whole(name, self.word(name)) != 0

    def wholes(self, name: str, missing: str = "") -> tuple[int, ...]:
        """Returns a list; if it is missing, () with a note of the consequence, or ValueError if it is required."""
        self.used.add(name)
        values = self.fields.get(name)
        if values is None and missing:
            self.notes.append(f"{name}: missing, {missing}")
            return ()
        if not isinstance(values, list | tuple) or not values:
            raise ValueError(f"{name}: found {values!r}, expected a list of whole numbers, one per layer")
        return tuple(_whole(f"{name}[{at}]", value) for at, value in enumerate(values))


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: found {value!r}, expected a number")
    return number


def _whole(name: str, value: Any) -> int:
    number = _number(name, value)
    if number != int(number):
        raise ValueError(f"{name}: found {value!r}, expected a whole number")
    return int(number)


def _rule(fields: Mapping[str, Any]) -> str:
    if set(CUDA_ONLY) & set(fields) or "use_derivative" not in fields:
        return "cuda"
    keys = _Keys(fields)
    *other, past = FEATURED
    two_frames = keys.flag("predict_two_steps") and keys.flag(past) and not any(map(keys.flag, other))
    simple = keys.word("unit_type") == "simple" and "residual" not in str(keys.word("ex_module"))
    return "cuda" if two_frames and simple else "classic"


def _staged(layers: int, each: int, rate: float, momentum: float) -> list[Event]:
    """Returns events that start the layers one after another, `each` steps apart."""
    return [(each * layer, layer, rate, momentum) for layer in range(layers)]


def _cuda(keys: _Keys, layers: int) -> dict[str, Any]:
    """Returns the fields of the CUDA implementation: two frames in, two out, regardless of the file's features."""
    momentum, multiplier = keys.number("momentum"), keys.number("readout_multiplier")
    between, final = later = _switches(keys)
    if between[0] == final[0] and between[1] != final[1]:
        keys.notes.append(
            f"intermediate_learning_rate {between[1]} and final_learning_rate {final[1]} are both due at step {final[0]}: "
            f"{final[1]} wins; in the original the intermediate one does"
        )
    each, initial = keys.whole("delay_each_layer_learning"), keys.number("initial_learning_rate")
    rates = (0, 0.01), *((step, multiplier * rate) for step, rate in later)
    readout = Readout(schedule=rates, start=between[0] + 1, momentum=momentum)
    return {
        "channels": keys.whole("input_channels"),
        "sign_of_error": keys.flag("opt_abs_diff"),
        "context_to_output": keys.flag("feed_context_in_complex_layer"),
        "schedule": (*_staged(layers, each, initial, momentum), *((step, None, rate, None) for step, rate in later)),
        "readout": _built(keys, "4_layer_readout", keys.flag("4_layer_readout"), readout),
    }


def _built(keys: _Keys, name: str, other: bool, readout: Readout) -> Readout | None:
    """Returns the readout; None, with a note, if an option requests an unsupported one."""
    if other:
        keys.notes.append(f"{name}: found {keys.fields[name]}, not available here: no readout taken")
    return None if other else readout


def _switches(keys: _Keys) -> tuple[tuple[int, float], tuple[int, float]]:
    """Returns (step, rate) of the intermediate and the final switch; a missing first one coincides with the second."""
    final = keys.whole("delay_final_learning_rate"), keys.number("final_learning_rate")
    names = "delay_intermediate_learning_rate", "intermediate_learning_rate"
    step, rate = (keys.word(name) for name in names)
    for name, value, taken in zip(names, (step, rate), final, strict=True):
        if value is None:
            keys.notes.append(f"{name}: missing, {taken} of the final rate taken")
    first = final[0] if step is None else _whole(names[0], step), final[1] if rate is None else _number(names[1], rate)
    return first, final


def _classic(keys: _Keys, layers: int) -> dict[str, Any]:
    momentum, supervised = keys.number("momentum"), keys.flag("supervised")
    rate, several = keys.number("supervised_rate"), keys.whole("readout_depth") != 1
    which = "1, so only the readouts learn, the units do not" if supervised else "0, so the readouts do not learn"
    keys.notes.append(f"supervised: {which}")
    readout = Readout(
        kind="unit",
        block=tuple((size, size) for size in keys.wholes("readout_block_size", "1 taken")),
        enabled=tuple(flag != 0 for flag in keys.wholes("enable_readout", "all enabled")),
        schedule=((0, rate if supervised else 0.0),),
        momentum=momentum,
    )
    return {
        **_unit(keys),
        "lateral_at": None if keys.flag("disable_lateral") else keys.whole("enable_lateral_at"),
        "feedback_at": None if keys.flag("disable_feedback") else keys.whole("enable_feedback_at"),
        "tau": keys.number("tau"),
        "squeeze": False,
        "init": "classic",
        "schedule": ((0, None, 0.0, momentum),) if supervised else _rates(keys, layers, momentum),
        "readout": _built(keys, "readout_depth", several, readout),
    }


def _unit(keys: _Keys) -> dict[str, Any]:
    """Returns the kind of unit, the features of its input, and its published values."""
    kind, residual = str(keys.word("unit_type")), "residual" in str(keys.word("ex_module"))
    if kind not in ("simple", "complex"):
        raise ValueError(f"unit_type: found {kind!r}, expected 'simple' or 'complex'")
    late = keys.flag("feed_context_in_complex_layer")
    if late and (residual or kind == "simple"):
        keys.notes.append("feed_context_in_complex_layer: ignored, the unit is not the complex one")
    if residual:
        kinds = {"simple": "residual", "complex": "complex_residual"}
        return {"unit": kinds[kind], "features": ("signal", "past"), "predict_steps": 2, "publish": "minmax"}
    return {
        "unit": kind,
        "features": tuple(itertools.compress(FEATURES, (True, *map(keys.flag, FEATURED)))),
        "predict_steps": 2 if keys.flag("predict_two_steps") else 1,
        "publish": "minmax" if keys.flag("normalize_output") else "raw",
        "context_to_output": late and kind == "complex",
    }


def _rates(keys: _Keys, layers: int, momentum: float) -> tuple[Event, ...]:
    """Returns events: each layer starts, and switches to its final rate, a fixed number of steps after the one below."""
    each, delay = keys.whole("delay_each_layer_learning"), keys.whole("delay_final_learning_rate")
    begin = _staged(layers, each, keys.number("initial_learning_rate"), momentum)
    final = keys.number("final_learning_rate")
    return (*begin, *((delay + each * layer, layer, final, None) for layer in range(layers)))
