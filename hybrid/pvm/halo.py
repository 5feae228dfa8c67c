"""What units publish for units of other ranks: sent and received once a tick."""

from typing import Any

import numpy as np

from ..ranks.group import Group
from .layout import TapeLayout, runs
from .shares import Shares


class Halo:
    """The numbers of the world that this rank sends to each other one and receives from it, of all streams.

    They are collected from a world and spread over it by one launch each. In between they lie in two arrays of the host, what
    goes to one rank, or comes from one, side by side; a device has mirrors of them.

    sent, received  how many numbers go and come in a tick
    """

    def __init__(
        self, group: Group, shares: Shares, layout: TapeLayout, device: Any, kernels: Any, streams: int, dtype: Any
    ):
        """To be called within the work of a queue.

        layout   of all units
        kernels  `Pvm`, see hybrid/contract
        """
        self._copy, self._kernels = device.copy, kernels
        # by the other rank; both sides have the places of the one that publishes in ascending order, stream by stream
        going = {other: units for (other, one), units in shares.reads.items() if one == group.rank}
        coming = {other: units for (one, other), units in shares.reads.items() if one == group.rank}
        self.sent, self.received = (
            streams * sum(int(layout.hidden[units].sum()) for units in side.values()) for side in (going, coming)
        )
        self._going, self._going_dev, self._from, send = _side(going, layout, device, streams, dtype)
        self._coming, self._coming_dev, self._to, receive = _side(coming, layout, device, streams, dtype)
        self._exchange = group.exchange(send, receive)

    def collect(self, world: Any) -> None:
        """Take what others read from a world (B, W); within the work of a queue."""
        self._kernels.collect(self._going_dev, world.reshape(1, -1), self._from)

    def leave(self) -> None:
        """Copy it to the host; within the work of a queue."""
        self._copy(self._going, self._going_dev)

    def start(self) -> None:
        """Begin to send what is on the host, and to receive."""
        self._exchange.start()

    def wait(self) -> None:
        """Wait until all has come that others send, and all that they read has gone."""
        self._exchange.wait()

    def spread(self, world: Any) -> None:
        """Write what has come to its places in a world (B, W); within the work of a queue."""
        self._copy(self._coming_dev, self._coming)
        self._kernels.spread(world.reshape(1, -1), self._coming_dev, self._to)


def _side(
    units: dict[int, np.ndarray], layout: TapeLayout, device: Any, streams: int, dtype: Any
) -> tuple[np.ndarray, Any, Any, dict[int, np.ndarray]]:
    """For what goes, or comes: room on the host and its mirror, (1, N), the places in a flat world, and the room by rank."""
    firsts = np.arange(streams)[:, None] * layout.world
    places = {
        rank: (firsts + runs(layout.published_at[one], layout.hidden[one])).ravel() for rank, one in units.items()
    }
    host = device.host_empty((1, sum(place.size for place in places.values())), dtype)
    ends = np.cumsum([place.size for place in places.values()])
    by_rank = dict(zip(places, np.split(host[0], ends[:-1]) if places else [], strict=True))
    index = np.concatenate([*places.values(), np.zeros(0, np.int64)]).astype(np.int32)
    return host, device.mirror(host), device.from_host(index), by_rank
