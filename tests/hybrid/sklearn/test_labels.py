"""The forms of labels."""

import numpy as np
import pytest
from scipy import sparse

from hybrid.sklearn import label_trees

DENSE = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("y", "form"),
    [
        (DENSE, "dense"),
        (DENSE.tolist(), "dense"),
        (list(DENSE), "dense"),
        (DENSE.astype(bool), "dense"),
        (sparse.csc_array(DENSE), "csr"),
        ([[1, 2], [], [0]], "lists"),
        ([{1, 2}, (), np.array([0])], "lists"),
    ],
)
def test_each_form_is_read_as_the_same_entries(y, form):
    found = label_trees.read(y)
    assert found.form == form and found.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.entries.toarray() != 0, DENSE != 0)


def test_one_label_each_and_names():
    found = label_trees.read(["b", "a", "b"])
    assert (found.form, found.classes.tolist()) == ("one", ["a", "b"])
    assert label_trees.read([["b", "a", "b"], ["c"]]).entries.toarray().astype(bool).tolist() == [[1, 1, 0], [0, 0, 1]]
    some = label_trees.read([["z", "a"], []], np.array(["a", "b"]), strange=True)
    assert some.entries.toarray().tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("y", [DENSE, DENSE.astype(bool), sparse.csr_array(DENSE), [["b", "c"], [], ["a"]]])
def test_what_was_found_is_written_in_the_same_form(y):
    read = label_trees.read(y)
    likeliest_first = sparse.csr_array(([0.9, 0.5, 0.8], [2, 1, 0], [0, 2, 2, 3]), (3, 3))
    found = label_trees.written(read, likeliest_first)
    if read.form == "lists":
        assert found == [["c", "b"], [], ["a"]]
    else:
        assert type(found) is (sparse.csr_array if read.form == "csr" else np.ndarray) and found.dtype == y.dtype
        np.testing.assert_array_equal(found.toarray() if read.form == "csr" else found, DENSE)
    assert likeliest_first.indices.tolist() == [2, 1, 0]  # left as it was


def test_one_label_each_is_written_as_an_array():
    read = label_trees.read(np.array([3, 5, 7]))
    assert label_trees.written(read, sparse.csr_array(([1.0, 1.0], [2, 0], [0, 1, 2]), (2, 3))).tolist() == [7, 3]


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (DENSE * 2, None, r"y: found an indicator \(3, 3\) with values other than 0 and 1"),
        (DENSE, np.arange(4), r"y: found an indicator \(3, 3\), expected 4 columns"),
        ([["a"], ["z"]], np.array(["a", "b"]), "y: found .*'z'.*, expected one of"),
        ([[["a"]], [["b"]]], None, r"y\[0\]: found \[\['a'\]\], expected an indicator"),
    ],
)
def test_other_forms_are_refused(y, classes, message):
    with pytest.raises(ValueError, match=message):
        label_trees.read(y, classes)
