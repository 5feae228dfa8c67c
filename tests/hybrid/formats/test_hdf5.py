import numpy as np
import pytest

h5py = pytest.importorskip("h5py", reason="h5py is not installed: make test-all")

from hybrid.formats import hdf5
from hybrid.formats.hdf5 import Neighbours

RNG = np.random.default_rng(0)


def some() -> Neighbours:
    train, test = (RNG.normal(size=(n, 3)).astype(np.float32) for n in (20, 4))
    far = np.linalg.norm(test[:, None] - train[None], axis=2)
    near = np.argsort(far, axis=1)[:, :5].astype(np.int32)
    return Neighbours(train, test, near, np.take_along_axis(far, near, 1).astype(np.float32), "euclidean")


@pytest.fixture
def path(tmp_path):
    hdf5.save(tmp_path / "data.hdf5", some())
    return tmp_path / "data.hdf5"


def test_what_is_written_is_read(tmp_path):
    given = some()
    hdf5.save(tmp_path / "data.hdf5", given)
    found = hdf5.load(tmp_path / "data.hdf5")
    for name in ("train", "test", "neighbors", "distances"):
        assert getattr(found, name).tobytes() == getattr(given, name).tobytes()
        assert getattr(found, name).dtype == getattr(given, name).dtype
    assert found.distance == "euclidean" and [entry.name for entry in tmp_path.iterdir()] == ["data.hdf5"]


def spoiled(path, name, **how):
    with h5py.File(path, "r+") as file:
        del file[name]
        if how:
            file.create_dataset(name, **how)


def test_parts_that_are_wrong(path):
    spoiled(path, "train", data=np.zeros(3))
    with pytest.raises(ValueError, match=r"data.hdf5: train: found float64 \(3,\), expected numbers of two axes"):
        hdf5.load(path)
    spoiled(path, "train", data=np.zeros((20, 4)))
    with pytest.raises(ValueError, match=r"found \(20, 4\), \(4, 3\), .*expected \(N, D\)"):
        hdf5.load(path)
    spoiled(path, "train", data=np.zeros((2, 3)))
    with pytest.raises(IndexError, match=r"data.hdf5: neighbors\[\d, \d\]: found \d+, expected 0 to 1"):
        hdf5.load(path)
    spoiled(path, "train")
    with pytest.raises(ValueError, match=r"data.hdf5: no 'train' in it, found 'distances', 'neighbors', 'test'"):
        hdf5.load(path)


def test_a_part_that_claims_more_than_is_there(path):
    spoiled(path, "train", shape=(10**9, 100), dtype=np.float32)
    with pytest.raises(ValueError, match=r"train: \(1000000000, 100\) claims 400,000,000,000 bytes, .* holds 0"):
        hdf5.load(path)
    spoiled(path, "train", data=np.zeros((10**6, 3)), compression="gzip")
    with pytest.raises(ValueError, match=r"train: \(1000000, 3\) claims 24,000,000 bytes"):
        hdf5.load(path)


def test_parts_in_other_files_are_not_followed(path, tmp_path):
    hdf5.save(tmp_path / "other.hdf5", some())
    for link in (h5py.ExternalLink(str(tmp_path / "other.hdf5"), "train"), h5py.SoftLink("/test")):
        with h5py.File(path, "r+") as file:
            del file["train"]
            file["train"] = link
        with pytest.raises(ValueError, match="no 'train' in it"):
            hdf5.load(path)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("train", np.zeros((20, 3)), ValueError),
        ("test", np.zeros((3, 3), np.float32), ValueError),
        ("neighbors", np.full((4, 5), 20), IndexError),
    ],
)
def test_what_cannot_be_written(tmp_path, name, value, error):
    with pytest.raises(error, match=rf"^{name}.*: found"):
        hdf5.save(tmp_path / "data.hdf5", some()._replace(**{name: value}))
    assert not list(tmp_path.iterdir())
