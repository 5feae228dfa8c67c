import errno
import os

import numpy as np
import pytest

from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.open import open_clips

SCENE = [frame.image for frame in (Scene((25, 31, 3), 8)[number] for number in range(8))]


def write(path, frames=SCENE, rate=12.5):
    with Film(path, rate) as film:
        for frame in frames:
            film.write(frame)
    return path


@pytest.mark.parametrize(
    "name, error, frames", [("a.mp4", 12, SCENE), ("a.gif", 12, SCENE), ("a", 0, [frame[..., :1] for frame in SCENE])]
)
def test_what_is_written_is_read(tmp_path, name, error, frames):
    frames = [frame.repeat(4, 0).repeat(4, 1) for frame in frames]
    (clip,) = open_clips(str(write(tmp_path / name, frames)), (100, 124, 3))
    assert len(clip) == len(frames)
    for number, frame in enumerate(frames):
        assert np.abs(clip[number].image - frame.astype(int)).mean() <= error
    assert os.listdir(tmp_path) == [name]


def test_rate(tmp_path):
    assert open_clips(str(write(tmp_path / "a.mp4", rate=30000 / 1001)), (4, 4, 3))[0].rate == 30000 / 1001
    for rate, found in ((10, 10), (40, 50)):  # of whole hundredths of a second
        assert open_clips(str(write(tmp_path / "a.gif", rate=rate)), (4, 4, 3))[0].rate == found
    (clip,) = open_clips(str(write(tmp_path / "a.mp4", SCENE[:2], rate=0.01)), (4, 4, 3))
    assert (len(clip), clip.rate) == (2, 0.01), "a frame may stand for a hundred seconds"


@pytest.mark.parametrize("name", ["a.mp4", "a.gif", "a"])
def test_a_film_that_fails_leaves_what_was_there(tmp_path, name):
    if name != "a":
        (tmp_path / name).write_bytes(b"old")
    with pytest.raises(KeyError), Film(tmp_path / name, 25) as film:
        film.write(SCENE[0])
        raise KeyError
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == ([] if name == "a" else [(name, b"old")])


@pytest.mark.parametrize("name", ["a.mp4", "a.gif", "a"])
def test_a_disk_that_fails_is_named(tmp_path, name, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=f"{name}: cannot be written .No space left") as caught:
        write(tmp_path / name)
    assert caught.value.errno == errno.ENOSPC
    assert not list(tmp_path.iterdir())


def test_replaces_a_film_but_no_full_directory(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"old")
    with Film(tmp_path / "a.mp4", 25) as film:
        film.write(SCENE[0])
        assert film._writer.stream.codec_context.thread_count == 1, "the cores are left to training"
    assert len((tmp_path / "a.mp4").read_bytes()) > 100
    (tmp_path / "d").mkdir()
    write(tmp_path / "d")
    with pytest.raises(FileExistsError, match="d: is a directory that is not empty"):
        write(tmp_path / "d")


def test_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a.doc: ends in '.doc'; expected .mp4, .gif"):
        Film(tmp_path / "a.doc", 25)
    with pytest.raises(FileNotFoundError, match=r"a.mp4: there is no directory .*none"):
        Film(tmp_path / "none" / "a.mp4", 25)
    with pytest.raises(ValueError, match=r"a.mp4: no frame was written"):
        write(tmp_path / "a.mp4", [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "frame, found",
    [
        (SCENE[0][1:], r"uint8 \(24, 31, 3\), expected uint8 \(25, 31, 3\)"),
        (SCENE[0][..., :2], r"uint8 \(25, 31, 2\)"),
    ],
)
def test_frames_refused(tmp_path, frame, found):
    with pytest.raises(ValueError, match=f"frame: found {found}"):
        write(tmp_path / "a.gif", [SCENE[0], frame])
