"""A torch module and its optimiser: what the user gave, checked, and in the state that a stage needs."""

import contextlib
import inspect
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
    """The optimiser itself, or what a function makes of the parameters.

    Raises ValueError for anything else, for a module that gives the function no parameter, and for an optimiser whose step
    cannot be called as step().
    """
    import torch

    if not isinstance(optimiser, torch.optim.Optimizer) and callable(optimiser):
        learning = [own for own in module.parameters() if own.requires_grad]
        if not learning:
            raise ValueError(
                f"module: found {type(module).__name__} without a parameter that learns, expected one at least"
            )
        optimiser = optimiser(learning)
    if not isinstance(optimiser, torch.optim.Optimizer):
        raise ValueError(
            f"optimiser: found {type(optimiser).__name__}, expected a torch.optim.Optimizer, or a function that makes one of "
            "a list of parameters"
        )
    theirs = {id(own) for own in module.parameters()}
    if any(id(own) not in theirs for group in optimiser.param_groups for own in group["params"]):
        raise ValueError("optimiser: found a parameter that is not the module's, expected those of the module alone")
    needed = [name for name, one in inspect.signature(optimiser.step).parameters.items() if _is_needed(one)]
    if needed:
        raise ValueError(
            f"optimiser: found {type(optimiser).__name__}, whose step needs a {needed[0]}, expected one that steps by the "
            "gradient that is there, such as torch.optim.Adam"
        )
    return optimiser


def _is_needed(argument: inspect.Parameter) -> bool:
    """Whether a call without this argument fails."""
    several = argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    return argument.default is argument.empty and not several
