"""Sparse features and labels; scikit-learn writes the same files."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from hybrid.formats import svm

RNG = np.random.default_rng(0)
X = sparse.csr_array(np.where(RNG.random((9, 6)) < 0.5, RNG.normal(size=(9, 6)), 0).astype(np.float32))
Y = sparse.csr_array((RNG.random((9, 4)) < 0.4).astype(np.float32))


def same(one, other):
    return one.shape == other.shape and (one != other).nnz == 0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.txt"


def test_the_header_says_how_many_and_numbers_from_0(path):
    path.write_text("3 5 4\n0,3 1:0.5 4:-2\n 0:1\n2\n")
    found = svm.load(path)
    assert found.features.toarray().tolist() == [[0, 0.5, 0, 0, -2], [1, 0, 0, 0, 0], [0] * 5]
    assert found.labels.toarray().tolist() == [[1, 0, 0, 1], [0] * 4, [0, 0, 1, 0]]


@pytest.mark.parametrize(
    ("text", "numbered"),
    [
        ("4 6 3\n", True),
        ("# data\n\n2,5 1:0.3 7:1.2\n", True),
        (" 1:0.5\n", True),
        ("1:0.5\n", True),
        ("+1 3:1e-3  # a remark\n", True),
        ("", False),
        ("__label__a some words\n", False),
        ("no label before 12:30\n", False),
        ("3\n", False),
    ],
)
def test_the_first_line_says_whether_features_are_numbered(path, text, numbered):
    path.write_text(text)
    assert svm.begins(path) == numbered


def test_what_scikit_learn_writes_is_read(path):
    dump_svmlight_file(X, Y, str(path), multilabel=True, zero_based=False)
    found = svm.load(path, features=6, labels=4)
    assert found.labels.dtype == np.float32 and same(found.labels, Y)
    np.testing.assert_allclose(found.features.toarray(), X.toarray(), rtol=1e-6)


BAD = {
    "data.txt, line 2: found 'x', expected feature:value": "1 1:2\n1 x\n",
    "data.txt, line 2: could not convert string to float: 'b'": "1 1:2\n1 2:b\n",
    "line 1: found '1:1_0', expected": "1 1:1_0\n",
    "line 1: the value 'nan', expected a finite number": "1 1:nan\n",
    "line 1: a feature occurs twice": "1 3:1 3:2\n",
    "line 2: the label 'a', expected a whole number": "1 1:1\na 1:1\n",
    "line 1: the feature 99999999999, expected at most 2147483647": "1 99999999999:1\n",
    "the number 2147483647, expected at most 2147483646": "1 0:1 2147483647:1\n",
    "line 2: the label '3', expected a whole number from 0 to 2": "1 2 3\n3 1:1\n",
    "found the number 2, expected at most 1": "1 2 3\n1 2:1\n",
    "data.txt: 1 examples, expected 3; is it truncated?": "3 2 3\n1 1:1\n",
    "1 examples, expected 999999999999": "999999999999 99999999999999999 3\n1 1:1\n",
    "labels: found the number 2000000 among 2 entries, expected .*; labels=2000001, or a first line": "2000000,3 1:1\n",
    "features: found the number 1999999 among 1 entries": "0 2000000:1\n",
    "data.txt: 0 examples, expected some": "",
}


@pytest.mark.parametrize("message", BAD)
def test_files_that_are_refused(path, message):
    path.write_text(BAD[message])
    with pytest.raises(ValueError, match=message):
        svm.load(path)


def test_sizes_that_are_given(path):
    path.write_text("2 3:1\n")
    with pytest.raises(ValueError, match="features: found the number 2, expected at most 1"):
        svm.load(path, features=2)
    with pytest.raises(ValueError, match="labels: found the number 2, expected at most 1"):
        svm.load(path, labels=2)
    path.write_text("2000000,3 1:1\n")  # large, and meant
    assert svm.load(path, labels=2000001).labels.shape == (1, 2000001)
    path.write_text("1 3 2000001\n2000000,3 1:1\n")
    assert svm.load(path).labels.shape == (1, 2000001)
    path.write_text("2 0:1\n")
    with pytest.raises(ValueError, match="a feature 0, expected numbers from 1 on, those of the training examples"):
        svm.load(path, first=1)
