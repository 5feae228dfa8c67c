"""What feeds that go through their data again and again share: epochs of ticks, as one sequence."""

from . import Batch


class Epochs:
    """A sequence of epochs * ticks_per_epoch batches; a feed is a subclass with `_cut`, the batch of a tick of an epoch."""

    def __init__(self, epochs: int, ticks_per_epoch: int):
        self.epochs, self.ticks_per_epoch = epochs, ticks_per_epoch

    def __len__(self) -> int:
        return self.epochs * self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        if not 0 <= tick < len(self):
            raise IndexError(f"tick: found {tick}, expected 0 to {len(self) - 1}")
        return self._cut(*divmod(tick, self.ticks_per_epoch))

    def _cut(self, epoch: int, tick: int) -> Batch:
        raise NotImplementedError
