"""What a readout has learned, as entries of a state_dict: tensors that share its memory."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from .. import check, trees


def entries(readout: Any) -> dict[str, Any]:
    """The parameters by name, and the numbers of state() as tensors of one number; of a GPU, as they are now."""
    learned = {name: torch.from_numpy(array) for name, array in readout.parameters().items()}
    return learned | {name: torch.tensor(number) for name, number in readout.state().items()}


def faults(readout: Any, given: Mapping[str, Any], prefix: str) -> list[str]:
    """Why the entries that are given cannot be loaded, one sentence each; a missing entry is no fault."""
    found = []
    for name, own in entries(readout).items():
        value = given.get(name, own)
        if not isinstance(value, torch.Tensor):
            found.append(f"{prefix}{name}: found {type(value).__name__}, expected a tensor {tuple(own.shape)}")
        elif value.shape != own.shape:
            found.append(f"{prefix}{name}: found the shape {tuple(value.shape)}, expected {tuple(own.shape)}")
        elif value.numel() and not all(math.isfinite(end) for end in value.aminmax()):
            found.append(f"{prefix}{name}: found NaN or infinity, expected finite numbers")
        elif name.endswith("squares") and value.numel() and value.amin() < 0:  # their root is taken
            found.append(f"{prefix}{name}: found {value.amin().item()}, expected numbers of at least 0")
    return found or _unfit(given)


def _unfit(given: Mapping[str, Any]) -> list[str]:
    """What a readout would refuse to be restored from."""
    try:
        if "counts" in given:
            check.counts(given["counts"].cpu().numpy())
        if {"leaf_up", "node_up"} <= given.keys():
            trees.checked(given["leaf_up"].cpu().numpy(), given["node_up"].cpu().numpy())
        if "tick" in given:
            check.whole("tick", given["tick"].item(), 0, 2**63 - 1)
    except ValueError as failure:
        return [str(failure)]
    return []


def fill(readout: Any, given: Mapping[str, Any]) -> None:
    """Go on from entries without faults, written in place; what is not given stays."""
    for name, array in readout.parameters().items():
        if name in given:
            np.copyto(array, given[name].detach().cpu().to(torch.from_numpy(array).dtype).numpy())
    state = readout.state()
    readout.restore(state | {name: given[name].item() for name in state if name in given})
