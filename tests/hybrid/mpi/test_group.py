"""Arrays come to whom they are sent."""

import numpy as np
import pytest

from hybrid.mpi.group import Group
from tests.support.ranks import ended, started


def test_arrays_come_to_all_ranks():
    assert ended(started("arrays", ranks=3, module="tests.support.rank_group")) == (0, "right\n", "")


def test_a_process_alone_tells_itself_nothing_and_raises_what_cannot_be_told():
    class Local(ValueError):
        """Not to be pickled."""

    group = Group()
    assert (group.rank, group.size, group.others) == (0, 1, [])
    array = np.arange(3)
    group.barrier()
    group.most(array)
    group.share(array)
    group.join(array, [3])
    group.exchange({}, {}).run()
    assert array.tolist() == [0, 1, 2]
    assert group.greatest(3, -1) == (3, -1)
    assert group.once(lambda: array) is array
    with pytest.raises(KeyError):
        group.once(lambda: {}["none"])
    for error in (ValueError("told"), KeyError("not told"), Local("not to be pickled")):
        with pytest.raises(type(error), match=str(error)), group.together():
            raise error
