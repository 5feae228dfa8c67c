"""Checkpoints in memory tell and hold what they told and held when they were made."""

import numpy as np

from hybrid.ranks.group import Group
from hybrid.storage import checkpoint
from hybrid.storage.copies import Parted, Whole


def test_a_whole_copy_is_read_as_a_checkpoint_is():
    array, facts = np.arange(6.0).reshape(2, 3), {"tick": 4, "sizes": (1, 2)}
    copies = Whole(Group(), {"numbers": array}, facts)
    array[:], facts["tick"] = 0, 5
    found = np.empty((2, 3))
    assert checkpoint.load_into(copies, {"numbers": found}) == {"tick": 4, "sizes": [1, 2]}
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert checkpoint.read_facts(copies)["tick"] == 4 and checkpoint.numbers(copies) > 6


def test_parts_have_their_names():
    array, none = np.arange(3, dtype=np.int32), np.zeros((0, 2))
    copies = Parted(Group(), {"numbers": array, "none": none}, {"tick": 4}, {"all": array})
    array[:] = 0
    (part,) = copies.parts(Group())
    assert part["numbers"].tolist() == [0, 1, 2] and part["numbers"].dtype == np.int32
    assert part["none"].size == 0 and copies.common["all"].tolist() == [0, 1, 2] and copies.facts == {"tick": 4}
