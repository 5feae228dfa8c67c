import json
import zipfile

import numpy as np
import pytest
from PIL import Image

from hybrid.feeds.video.cache import Kept, Memory, keep
from hybrid.feeds.video.camera import Camera
from hybrid.feeds.video.clip import Frame, check_shape
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.frames import Frames
from hybrid.feeds.video.images import Images
from hybrid.feeds.video.open import open_clips
from hybrid.feeds.video.scene import Scene
from hybrid.feeds.video.video_file import Video


class Numbers:
    """A clip whose frame i is filled with first + i; every third has no label."""

    rate = 25.0

    def __init__(self, first, length, shape=(2, 3, 1)):
        self.first, self.length, self.shape, self.decoded = first, length, shape, []

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        self.decoded.append(number)
        value = self.first + number
        box = None if value % 3 == 0 else np.array([value, 0, 1, 1], np.float32)
        return Frame(np.full(self.shape, value, np.uint8), box)

    def describe(self):
        return {"kind": "numbers", "first": self.first}


class Ticker:
    """A live clip."""

    rate, shape = 25.0, (2, 3, 1)

    def __getitem__(self, number):
        return Frame(np.full(self.shape, number, np.uint8), None)

    def describe(self):
        return {"kind": "ticker"}


def values(feed):
    return [batch.image[:, 0, 0, 0].tolist() for batch in feed]


def test_streams_go_through_all_clips_again_and_again():
    feed = Frames([Numbers(0, 3), Numbers(10, 2)], 7, streams=2)
    first, second = [0, 1, 2, 10, 11, 0, 1], [2, 10, 11, 0, 1, 2, 10]  # stream 1 starts 5 // 2 frames in
    assert values(feed) == [list(pair) for pair in zip(first, second, strict=True)]
    assert len(feed) == 7


def test_batch():
    batch = Frames([Numbers(1, 4)], 4, streams=4)[0]
    assert (batch.image.shape, batch.image.dtype) == ((4, 2, 3, 1), np.uint8)
    assert batch.box.tolist() == [[1, 0, 1, 1], [2, 0, 1, 1], [0] * 4, [4, 0, 1, 1]]
    assert batch.box.dtype == np.float32
    assert batch.labelled.tolist() == [True, True, False, True]


def test_pure_function_of_the_tick():
    def make():
        return Frames([keep(Scene((12, 10, 3), 9), Memory()), Scene((12, 10, 3), 4, seed=1)], 30, streams=3)

    feed, again = make(), make()
    batches = [feed[tick] for tick in range(30)]
    for tick in np.random.default_rng(0).permutation(30):
        for one, other in zip(again[int(tick)], batches[tick], strict=True):
            np.testing.assert_array_equal(one, other)
    assert json.loads(json.dumps(feed.describe())) == again.describe()


def test_a_live_clip_is_asked_by_tick():
    assert values(Frames([Ticker()], 3)) == [[0], [1], [2]]


@pytest.mark.parametrize(
    "clips, streams, message",
    [
        ([], 1, "clips: found none"),
        ([Numbers(0, 1), Numbers(0, 1, (2, 3, 3))], 1, r"clips\[1\]: found shape \(2, 3, 3\), expected \(2, 3, 1\)"),
        ([Ticker()], 2, "a live clip cannot be in two places"),
        ([Numbers(0, 1), Ticker()], 1, "found 2 with a live one"),
        ([Numbers(0, 1)], 0, "streams: found 0"),
    ],
)
def test_refused(clips, streams, message):
    with pytest.raises(ValueError, match=message):
        Frames(clips, 1, streams)


@pytest.mark.parametrize("tick", [-1, 3])
def test_ticks_outside(tick):
    with pytest.raises(IndexError, match=f"tick: found {tick}, expected 0 to 2"):
        Frames([Numbers(0, 2)], 3)[tick]


def test_kept_frames_are_decoded_once():
    clip = Numbers(5, 4)
    kept = keep(clip, Memory(4 * 6))
    seen = [[kept[number].image.max() for number in range(4)] for _ in range(3)]
    assert seen == [[5, 6, 7, 8]] * 3
    assert clip.decoded == [0, 1, 2, 3]
    assert kept[1].box is None
    assert kept[0].box.tolist() == [5, 0, 1, 1]
    assert not kept[0].image.flags.writeable
    with pytest.raises(IndexError, match="frame: found 4, expected 0 to 3"):
        kept[4]


def test_clips_share_the_memory_and_are_kept_whole_or_not_at_all():
    memory = Memory(4 * 6 + 5)
    clips = [keep(Numbers(0, length), memory) for length in (5, 4, 1)]
    assert [isinstance(clip, Kept) for clip in clips] == [False, True, False]


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 2, 2), (2, 2, 4), (2, 2), 5, (2.0, 2, 1)])
def test_shapes_refused(shape):
    with pytest.raises(ValueError, match=r"shape: found|rows: found|channels: found"):
        check_shape(shape)


def test_synthetic_by_name():
    (plain,), (seeded,) = (open_clips(name, (8, 9, 3), length=7) for name in ("synthetic", "synthetic:4"))
    assert [clip.describe()["seed"] for clip in (plain, seeded)] == [0, 4]
    assert (len(plain), plain.shape) == (7, (8, 9, 3))
    assert isinstance(plain, Kept)
    assert isinstance(open_clips("synthetic", (8, 9, 3), memory=100)[0], Scene)


def film(path, count=3):
    with Film(path, 10, zoom=1) as film:
        for number in range(count):
            film.write(np.full((16, 16, 3), 20 * number, np.uint8))


def test_files_by_name(tmp_path):
    shape = (4, 4, 1)
    film(tmp_path / "pictures")
    for name in ("v10.mp4", "v9.gif"):
        film(tmp_path / name, 2 + len(name))
    with zipfile.ZipFile(tmp_path / "v11.zip", "w") as archive:
        archive.write(tmp_path / "pictures" / "000001.png", "1.png")
    opened = [open_clips(str(tmp_path / name), shape) for name in ("", "pictures", "v9.gif", "v11.zip")]
    assert [[len(clip) for clip in clips] for clips in opened] == [[8, 9, 1], [3], [8], [1]]
    kinds = [[type(clip.clip) for clip in clips] for clips in opened]
    assert kinds == [[Video, Video, Images], [Images], [Video], [Images]]
    assert opened[3][0][0].image.tolist() == np.full(shape, 20).tolist()


def test_labels_by_name_unless_not_wanted(tmp_path):
    film(tmp_path / "v.mp4")
    (tmp_path / "v.txt").write_text("4,0,8,4\n\n0,0,0,0\n")
    (labelled,), (plain,) = (open_clips(str(tmp_path / "v.mp4"), (8, 8, 3), labels=wanted) for wanted in (True, False))
    assert [labelled[number].box.tolist() for number in range(3)] == [[2, 0, 4, 2], [0] * 4, [0] * 4]
    assert plain[0].box is None
    assert labelled.describe() != plain.describe()


def test_sources_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mixed").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "mixed" / "a.png")
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    for name in ("mixed/a.mp4", "a.doc", "none.zip", "none.mp4"):
        (tmp_path / name).write_bytes(b"text")
    for name, message in {
        "missing": "missing: there is no such file or directory",
        "empty": "empty: no images and no videos in it",
        "mixed": r"mixed: holds images \(a.png\) and clips \(a.mp4\)",
        "a.png": "a.png: a single image; give the directory",
        "a.doc": "a.doc: found a file that ends in '.doc', expected one of .mp4",
        "none.zip": "none.zip: File is not a zip file",
        "none.mp4": "none.mp4: cannot be opened as a video .*Invalid data",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            open_clips(str(tmp_path / name), (4, 4, 3))
    for name in ("synthetic:x", "camera:-1", "synthetic:²"):
        with pytest.raises(ValueError, match=f"{name}: expected a whole number after the colon"):
            open_clips(name, (4, 4, 3))


def test_camera_by_name(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(OSError, match="/dev/video77: no camera can be opened there"):
        open_clips("camera:77", (4, 4, 3))
    assert not hasattr(Camera, "__len__")
