"""The tensors of a torch module and of its optimiser as arrays of the host, by name, which a checkpoint keeps.

    module.NAME           a parameter
    buffer.NAME           what the module keeps beside its parameters, such as running means
    optimiser.NUMBER.KEY  of the parameter with this number in the optimiser's groups

Numbers that the optimiser keeps and its settings are facts.
"""

from typing import Any

import numpy as np


class State:
    """A torch module and the optimiser of its parameters.

    Raises ValueError for a module that keeps anything but tensors.
    """

    def __init__(self, module: Any, optimiser: Any):
        self._module, self._optimiser = module, optimiser
        self._copies: dict[str, np.ndarray] = {}
        self._tensors()

    def arrays(self) -> dict[str, np.ndarray]:
        """The tensors by name: their own memory where NumPy can show it, else copies as `fetch` left them."""
        return {name: self._array(name, tensor) for name, tensor in self._tensors().items()}

    def buffers(self) -> list[str]:
        """The names of what the module keeps beside its parameters."""
        return [name.removeprefix("buffer.") for name in self._tensors() if name.startswith("buffer.")]

    def fetch(self) -> None:
        """Copy from those tensors whose memory NumPy cannot show."""
        for name, tensor in self._hidden():
            np.copyto(self._copies[name], _bits(tensor.detach().cpu().contiguous()).numpy())

    def send(self) -> None:
        """Copy back to those tensors."""
        import torch

        with torch.no_grad():
            for name, tensor in self._hidden():
                tensor.copy_(torch.from_numpy(self._copies[name]).view(tensor.dtype))

    def facts(self) -> dict[str, Any]:
        """JSON-able: the settings of the optimiser, the form of each of its tensors, and its numbers."""
        told = self._optimiser.state_dict()
        groups = [{key: _plain(value) for key, value in group.items()} for group in told["param_groups"]]
        state = {str(number): {key: _form(value) for key, value in of.items()} for number, of in told["state"].items()}
        return {"groups": groups, "state": state}

    def expect(self, facts: dict[str, Any]) -> None:
        """Take the settings and numbers of `facts`, and make room for the optimiser's tensors, which are then to be filled.

        Raises ValueError where the optimiser has other groups of parameters.
        """
        own = self._optimiser.state_dict()
        sizes = [[len(group["params"]) for group in groups] for groups in (own["param_groups"], facts["groups"])]
        if sizes[0] != sizes[1]:
            raise ValueError(
                f"optimiser: found groups of {sizes[0]} parameters, expected {sizes[1]}, as the checkpoint has; make it as "
                "it was made then"
            )
        groups = [
            group | {key: _like(group.get(key), value) for key, value in kept.items() if value is not None}
            for group, kept in zip(own["param_groups"], facts["groups"], strict=True)
        ]
        state = {int(number): {key: _made(form) for key, form in of.items()} for number, of in facts["state"].items()}
        self._optimiser.load_state_dict({"state": state, "param_groups": groups})

    def _tensors(self) -> dict[str, Any]:
        import torch

        parameters = dict(self._module.named_parameters())
        found = {f"module.{name}": tensor for name, tensor in parameters.items()}
        shared = {id(tensor) for tensor in parameters.values()}
        for name, value in self._module.state_dict(keep_vars=True).items():
            if not isinstance(value, torch.Tensor):
                raise ValueError(
                    f"module: keeps {type(value).__name__} {name}, expected tensors, which a checkpoint keeps"
                )
            if id(value) not in shared:
                found[f"buffer.{name}"] = value
        for number, state in self._optimiser.state_dict()["state"].items():
            tensors = {key: value for key, value in state.items() if isinstance(value, torch.Tensor)}
            found |= {f"optimiser.{number}.{key}": value for key, value in tensors.items()}
        return found

    def _array(self, name: str, tensor: Any) -> np.ndarray:
        if _shown(tensor):
            array: np.ndarray = tensor.detach().numpy()
            return array
        if name not in self._copies or self._copies[name].shape != tensor.shape:
            self._copies[name] = _bits(tensor.detach().cpu().contiguous()).numpy().copy()
        return self._copies[name]

    def _hidden(self) -> list[tuple[str, Any]]:
        """The tensors whose memory NumPy cannot show, all of which have a copy."""
        found = {name: tensor for name, tensor in self._tensors().items() if not _shown(tensor)}
        for name, tensor in found.items():
            self._array(name, tensor)
        return list(found.items())


def _shown(tensor: Any) -> bool:
    """Whether NumPy can show the memory of a tensor as a checkpoint takes it."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and tensor is _bits(tensor)


def _bits(tensor: Any) -> Any:
    """The tensor, or its bits as whole numbers where checkpoints have no such dtype."""
    import torch

    return tensor.view(torch.int16) if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def _plain(value: Any) -> Any:
    """A setting of an optimiser as JSON has it; None for what it has not, which stays as the user made it."""
    import torch

    if isinstance(value, torch.Tensor) and value.numel() == 1:
        return value.item()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | int | float | str) else None


def _like(own: Any, value: Any) -> Any:
    """A setting as JSON gave it back, of the kind that the optimiser has."""
    import torch

    if isinstance(own, torch.Tensor):
        return torch.full_like(own, value)
    return tuple(value) if isinstance(own, tuple) else value


def _form(value: Any) -> Any:
    """What is told of an entry of an optimiser's state: of a tensor its form, else the value itself."""
    import torch

    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"optimiser: keeps {type(value).__name__}, expected tensors and numbers, which a checkpoint keeps")


def _made(form: Any) -> Any:
    """The reverse: a tensor that is still to be filled, or the value."""
    import torch

    return torch.zeros(form["shape"], dtype=getattr(torch, form["dtype"])) if isinstance(form, dict) else form
