import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from hybrid.feeds.ragged import from_lists, from_sparse

lists = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=8)


def back(ragged):
    return [part.tolist() for part in np.split(ragged.ids, ragged.at[1:-1])]


@given(lists, st.data())
def test_some_of_the_lists(given_, data):
    ragged = from_lists("ids", given_)
    assert back(ragged) == given_ and ragged.ids.dtype == np.int32 and ragged.at.dtype == np.int64
    rows = data.draw(st.lists(st.integers(0, len(given_) - 1), max_size=9))
    some = ragged.take(np.array(rows, np.int64))
    assert [some.ids[a:b].tolist() for a, b in zip(some.at, some.at[1:], strict=False)] == [given_[row] for row in rows]
    assert ragged.most(2) == sum(sorted(map(len, given_))[-2:])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix])
def test_sparse_matrices(kind):
    dense = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, -1]])
    ragged = from_sparse("inputs", kind(dense), valued=True)
    assert back(ragged) == [[1], [], [0, 2]] and ragged.values.tolist() == [1.5, 2, -1]
    assert from_sparse("inputs", kind(dense), valued=False).values is None


def test_what_is_no_such_lists():
    with pytest.raises(ValueError, match=r"ids\[1\]: found float64 \(1,\), expected one row of whole numbers"):
        from_lists("ids", [[1], [0.5]])
    with pytest.raises(IndexError, match=r"ids\[1\]\[0\]: found 3, expected 0 to 2"):
        from_lists("ids", [[1], [3]], 3)
    with pytest.raises(IndexError, match=r"ids\[0\]\[0\]: found 4294967296"):
        from_lists("ids", [[2**32]])
