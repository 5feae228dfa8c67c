"""A readout on a GPU that another library uses too, PyTorch or CuPy: its kernels take that library's memory as it is."""

from typing import Any

from ...alone import Alone
from ...interrupt import Held


class Foreign:
    """What a readout with `learn` and `_log_prob` does with arrays of its device, see `Device.adopt` in gpu/device.py."""

    alone: Alone
    _place: Any
    _log_prob: Any

    def on_stream(self, stream: int, work: Any, *arrays: Any) -> None:
        """Do work(*arrays), such as `learn` or `judge`, after all that is on the other library's CUDA stream now.

        It is done when this returns: the arrays may then be used on any stream, or freed. Nothing is checked.
        """
        with Held(), self.alone:
            self._place.follow(stream)
            self._place.do(work, *arrays)

    def judge(self, out: Any, hidden: Any, target: Any) -> None:
        """What `log_prob` does between its checks, with arrays of the device, within the work of a queue; out (B,)."""
        self._log_prob(out, hidden, target)
