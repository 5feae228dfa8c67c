import zipfile

import numpy as np
import pytest
from PIL import Image

from hybrid.feeds.video import open as opening
from hybrid.feeds.video.clips.images import Images
from hybrid.feeds.video.clips.video_file import Video
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.open import Kept, kept, open_clips
from tests.support.numbered_clip import Numbers


def film(path, count=3):
    with Film(path, 10) as film:
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
    (tmp_path / "pictures" / ".v.mp4").write_bytes(b"hidden")
    (tmp_path / "pictures" / "v.mp4").mkdir()
    assert [len(clip) for clip in open_clips(str(tmp_path / "pictures"), shape)] == [3]
    kinds = [[type(clip.clip) for clip in clips] for clips in opened]
    assert kinds == [[Video, Video, Images], [Images], [Video], [Images]]
    assert opened[3][0][0].image.tolist() == np.full(shape, 20).tolist()


def test_clips_share_the_memory_and_are_kept_whole_or_not_at_all(monkeypatch):
    monkeypatch.setattr(opening, "MEMORY", 4 * 6 + 5)
    clips = kept([Numbers(0, length) for length in (5, 4, 1)])
    assert [isinstance(clip, Kept) for clip in clips] == [False, True, False]


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
        "a.doc": "a.doc: found a file that ends in '.doc', expected one of .264, ",
        "none.zip": "none.zip: File is not a zip file",
        "none.mp4": "none.mp4: cannot be opened as a video .*Invalid data",
    }.items():
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            open_clips(str(tmp_path / name), (4, 4, 3))
    for name in ("synthetic:x", "synthetic:-1", "synthetic:²"):
        with pytest.raises(ValueError, match=f"{name}: expected a whole number after the colon"):
            open_clips(name, (4, 4, 3))
