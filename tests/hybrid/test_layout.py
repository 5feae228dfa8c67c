import pytest

from hybrid.units import unit_layout


def test_offsets_by_hand():
    layout = unit_layout([2, 1], [3, 1], [1, 4])
    assert layout.w_at.tolist() == [0, 3 * 3 + 1 * 4, 13 + 1 * 2 + 4 * 2]
    assert [at.tolist() for at in layout[4:]] == [[0, 2, 3], [0, 3, 4], [0, 1, 5]]


@pytest.mark.parametrize(
    "sizes, message",
    [
        (([], [], []), "inputs: expected a list of whole numbers"),
        (([1.5], [1], [1]), "inputs: expected a list of whole numbers"),
        (([1], [0], [1]), r"hidden\[0\] is 0; a unit needs at least 1"),
        (([1], [1], [3, 4]), "outputs has 2 entries and inputs 1"),
        (([1], [1], [2**32 + 1]), r"outputs\[0\] is 4294967297; a unit has at most 2147483647"),  # its int32 is 1
    ],
)
def test_sizes_that_are_none_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        unit_layout(*sizes)
