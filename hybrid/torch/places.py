"""Where tensors meet a readout: as NumPy's arrays on the host, or in the memory of the readout's own GPU."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from .. import check


def place(readout: Any, tensor: Any) -> "Host | Beside":
    """How this readout takes tensors that are where this one is."""
    device = readout.backend.device
    beside = not device.host_memory and device.name == str(tensor.device)
    return Beside(readout) if beside and not getattr(readout, "on_host", False) else Host(readout)


class Host:
    """A readout by its calls that take NumPy's arrays; tensors of the host share their memory with them.

    Tensors of a GPU are copied through page-locked memory. What is on the host a readout on a GPU copies by itself.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        """The log-probability of each row's target, (M,) float32; hidden (M, D) float32, target (M,) int32."""
        return there(self._readout.log_prob(arrived(hidden), arrived(target)), hidden)

    def losses(self, hidden: Any, target: Any) -> Any:
        """The loss of each row as the next step would have it, (M,) float32; nothing moves."""
        return there(self._readout.losses(arrived(hidden), arrived(target)), hidden)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        """Learn; the gradient of each row, times its weight (M,) float32 (None: 1)."""
        return self._each(self._readout.step, hidden, target, weight)

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As `step`, but nothing moves."""
        return self._each(self._readout.still, hidden, target, weight)

    def _each(self, call: Callable[..., Any], hidden: Any, target: Any, weight: Any) -> Any:
        """Rows cut into calls that the readout takes."""
        rows, classes = arrived(hidden), arrived(target)
        weights = None if weight is None else arrived(weight)
        grad = torch.empty(rows.shape, dtype=torch.float32, device="cpu", pin_memory=hidden.is_cuda)
        written = grad.numpy()
        for part in parts(len(rows), self._readout.batch):
            call(written[part], rows[part], classes[part], None if weights is None else weights[part])
        return grad.to(hidden.device, non_blocking=True)


class Beside:
    """A readout on the GPU where the tensors are: its kernels take their memory as it is, and nothing is copied.

    They begin after what PyTorch has put on its current stream, and are done when a call returns.
    """

    def __init__(self, readout: Any):
        self._readout = readout

    def log_prob(self, hidden: Any, target: Any) -> Any:
        """As of Host."""
        out = hidden.new_empty(len(hidden))
        self._each(self._readout.judge, out, hidden, target)
        return out

    def losses(self, hidden: Any, target: Any) -> Any:
        """As of Host: readouts that draw are on the CPU."""
        return -self.log_prob(hidden, target)

    def step(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As of Host."""
        grad, loss = hidden.new_empty(hidden.shape), hidden.new_empty(len(hidden))
        self._each(self._readout.learn, grad, loss, hidden, target, *([] if weight is None else [weight]))
        check.loss(loss.cpu().numpy())
        return grad

    def still(self, hidden: Any, target: Any, weight: Any) -> Any:
        """As of Host."""
        with self._readout.held_still():
            return self.step(hidden, target, weight)

    def _each(self, work: Callable[..., None], *tensors: Any) -> None:
        """Work on rows, cut into calls that the readout takes; all tensors have as many."""
        if not len(tensors[0]):
            return
        stream = torch.cuda.current_stream(tensors[0].device).cuda_stream
        arrays = [self._readout.backend.device.adopt(tensor.detach().contiguous()) for tensor in tensors]
        for part in parts(len(tensors[0]), self._readout.batch):
            self._readout.on_stream(stream, work, *(array[part] for array in arrays))


def parts(rows: int, most: int) -> Iterator[slice]:
    """The calls into which so many rows are cut."""
    return (slice(at, at + most) for at in range(0, rows, most))


def arrived(tensor: Any) -> np.ndarray:
    """A tensor as an array in C order: its own memory where it is on the host and lies so."""
    tensor = tensor.detach().contiguous()
    if tensor.is_cuda:
        locked = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        locked.copy_(tensor, non_blocking=True)
        torch.cuda.current_stream(tensor.device).synchronize()
        tensor = locked
    found: np.ndarray = tensor.cpu().numpy()
    return found


def there(array: np.ndarray, beside: Any) -> Any:
    """An array as a tensor on the device of another one."""
    return torch.from_numpy(array).to(beside.device)
