"""Every backend offers what the contract promises: the same names, arguments, order and defaults. Needs no GPU."""

import importlib
import importlib.util
import inspect
import re

import pytest

from hybrid import contract

BACKENDS = ("cpu", "gpu")
ONE_ONLY = dict.fromkeys(("SampledLogistic", "SampledSoftmax"), "cpu") | {"TreeBatch": "gpu"}
CLASSES = {"Device", "Queue", "Event", "Recorder"}  # kept by classes of device.py; all others by a module
PROMISES = [
    (name, one)
    for name, one in inspect.getmembers(contract, inspect.isclass)
    if getattr(one, "_is_protocol", False) and one.__module__.startswith(contract.__name__)
]


def module_of(protocol: str) -> str:
    """TreeSoftmax -> tree_softmax."""
    return "device" if protocol in CLASSES else re.sub(r"(?<!^)(?=[A-Z])", "_", protocol).lower()


def promised(protocol) -> list[str]:
    return [name for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"]


def arguments(function, drop_self: bool) -> list[tuple]:
    """Name, kind and default of each argument; annotations may differ."""
    parameters = list(inspect.signature(function).parameters.values())[drop_self:]
    return [(parameter.name, parameter.kind, parameter.default) for parameter in parameters]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("name", "protocol"), PROMISES, ids=[name for name, _ in PROMISES])
def test_a_backend_keeps_the_contract(backend, name, protocol):
    if ONE_ONLY.get(name, backend) != backend:
        assert importlib.util.find_spec(f"{backend}.{module_of(name)}") is None
        return
    module = importlib.import_module(f"{backend}.{module_of(name)}")
    keeper = getattr(module, name) if name in CLASSES else module
    for function in promised(protocol):
        found = arguments(getattr(keeper, function), name in CLASSES)
        assert found == arguments(getattr(protocol, function), True), function
