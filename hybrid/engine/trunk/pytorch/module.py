"""A torch module and its optimiser: what the user gave, checked, and in the state that a stage needs."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def asked(module: Any) -> Iterator[None]:
    """A context in which nothing learns or is dropped; each part is then as it was, in training mode or not."""
    import torch

    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in before:
            part.training = training


@contextlib.contextmanager
def scaled(optimiser: Any, scale: float) -> Iterator[None]:
    """A context in which the learning rates of an optimiser are multiplied."""
    rates = [(group, group["lr"]) for group in optimiser.param_groups if "lr" in group]
    for group, rate in rates:
        group["lr"] = rate * scale
    try:
        yield
    finally:
        for group, rate in rates:
            group["lr"] = rate


def checked(module: Any) -> Any:
    """The module itself; ValueError for anything else."""
    import torch

    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module: found {type(module).__name__}, expected a torch.nn.Module")
    return module


def made_optimiser(optimiser: Any, module: Any) -> Any:
    """The optimiser itself, or what a function makes of the parameters; ValueError for anything else."""
    import torch

    if not isinstance(optimiser, torch.optim.Optimizer) and callable(optimiser):
        optimiser = optimiser([own for own in module.parameters() if own.requires_grad])
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise ValueError(
            f"optimiser: found {type(optimiser).__name__}, expected a torch.optim.Optimizer, or a function that makes one of "
            "a list of parameters"
        )
    theirs = {id(own) for own in module.parameters()}
    if any(id(own) not in theirs for group in optimiser.param_groups for own in group["params"]):
        raise ValueError("optimiser: found a parameter that is not the module's, expected those of the module alone")
    return optimiser
