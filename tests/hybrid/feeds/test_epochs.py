import pytest

from hybrid.feeds import Epochs


class Places(Epochs):
    """A feed whose batches are the places that it was asked for."""

    def _cut(self, epoch, tick):
        return epoch, tick


def test_a_tick_is_one_of_an_epoch():
    feed = Places(epochs=2, ticks_per_epoch=3)
    assert len(feed) == 6
    assert [feed[tick] for tick in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize("tick", [-1, 6])
def test_ticks_outside(tick):
    with pytest.raises(IndexError, match=f"tick: found {tick}, expected 0 to 5"):
        Places(epochs=2, ticks_per_epoch=3)[tick]
