import io
import os
import zipfile

import numpy as np
import pytest
from PIL import Image, ImageOps

from hybrid.feeds.video.clips.images import directory, open_clip

SHAPE = (4, 4, 3)


def encoded(value, size=(8, 8), mode="RGB", kind="PNG", **options):
    file = io.BytesIO()
    Image.new(mode, size, value).save(file, kind, **options)
    return file.getvalue()


def folder(tmp_path, files):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def archive(tmp_path, files):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as file:
        for name, content in files.items():
            file.writestr(name, content)
    return tmp_path / "set.zip"


SET = {
    "img10.png": encoded((30, 0, 0)),
    "img2.jpg": encoded((20, 0, 0), (16, 8), kind="JPEG", quality=95),
    "img1.bmp": encoded((10, 0, 0), kind="BMP"),
    "labels.txt": "2,2,4,4\n4,0,8,4\n\n",
}


@pytest.mark.parametrize(
    "opened", [lambda path: directory(folder(path, SET), SHAPE), lambda path: open_clip(archive(path, SET), SHAPE)]
)
def test_natural_order_each_with_its_own_scale(tmp_path, opened):
    clip = opened(tmp_path)
    assert len(clip) == 3
    for number, red in enumerate((10, 20, 30)):
        np.testing.assert_allclose(clip[number].image[..., 0], red, atol=2)
    assert [clip[number].box.tolist() for number in range(3)] == [[1, 1, 2, 2], [1, 0, 2, 2], [0, 0, 0, 0]]
    assert clip[0].box.dtype == np.float32
    with pytest.raises(IndexError, match="frame: found 3, expected 0 to 2"):
        clip[3]


@pytest.mark.parametrize(
    "content, grey",
    [
        (encoded((100, 100, 100, 7), mode="RGBA"), 100),
        (encoded(100, mode="L"), 100),
        (encoded(100 * 257, mode="I;16"), 100),
        (Image.new("RGB", (8, 8), (100, 100, 100)).quantize(2), 100),
        (encoded((100, 100, 100), kind="WEBP", lossless=True), 100),
        (encoded((100, 100, 100, 0), mode="CMYK", kind="JPEG", quality=100), 155),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_becomes_grey_or_colour(tmp_path, content, grey, channels):
    if isinstance(content, Image.Image):
        content.save(tmp_path / "a.png", transparency=b"\x80\xff")
    else:
        (tmp_path / "a.png").write_bytes(content)
    image = directory(tmp_path, (4, 4, channels))[0].image
    assert image.shape == (4, 4, channels)
    np.testing.assert_allclose(image, grey, atol=1)


@pytest.mark.parametrize("orientation", range(1, 10))
def test_every_way_of_turning_is_pillows(tmp_path, orientation):
    """Its label is a box of what is seen, upright."""
    picture, exif = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(4, 6)), Image.Exif()
    exif[0x0112] = orientation
    picture.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as stored:
        expected = np.array(ImageOps.exif_transpose(stored))
    box = [0, 1, expected.shape[1], expected.shape[0] - 1]  # inside where its size is known
    (tmp_path / "labels.txt").write_text(",".join(map(str, box)))
    frame = directory(tmp_path, (*expected.shape, 1))[0]
    assert np.array_equal(frame.image[..., 0], expected) and frame.box.tolist() == box


@pytest.mark.parametrize(
    "files, message",
    [
        ({"a.png": b"text"}, "a.png: cannot be read as an image .not an image.; replace or remove it"),
        ({"labels.txt": "1,1,1,1"}, "no images in it; expected files that end in .jpg"),
        ({"a.png": encoded(0), "labels.txt": "", "labels.csv": ""}, "found both labels.txt and labels.csv"),
    ],
)
def test_sets_refused(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        directory(folder(tmp_path, files), SHAPE)


def test_an_image_cut_short_is_named_and_the_others_stay(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    for name in ("1.png", "2.png"):
        Image.fromarray(noise).save(tmp_path / name)
    (tmp_path / "2.png").write_bytes((tmp_path / "2.png").read_bytes()[:4000])
    clip = directory(tmp_path, SHAPE)
    before = clip[0].image
    with pytest.raises(ValueError, match=r"2.png: cannot be read as an image"):
        clip[1]
    np.testing.assert_array_equal(clip[0].image, before)


def test_zips_refused(tmp_path, monkeypatch):
    path = archive(tmp_path, {"a.png": encoded(0)})
    data = path.read_bytes()
    path.write_bytes(data[:50] + bytes([data[50] ^ 255]) + data[51:])
    with pytest.raises(ValueError, match=r"set.zip, a.png: cannot be unpacked .Bad CRC"):
        open_clip(path, SHAPE)
    monkeypatch.setattr("hybrid.feeds.video.clips.images.LARGEST", 10)
    with pytest.raises(ValueError, match=r"set.zip, a.png: cannot be unpacked \(it unpacks to \d+ .* at most 10"):
        open_clip(archive(tmp_path, {"a.png": encoded(0)}), SHAPE)


def test_a_small_file_of_many_pixels_is_refused_before_they_take_memory(tmp_path):
    Image.new("1", (2**14, 2**13 + 1)).save(tmp_path / "many.png")
    assert (tmp_path / "many.png").stat().st_size < 50_000
    with pytest.raises(ValueError, match=r"many\.png: cannot .* an image \(16384 x 8193 pixels, .* at most 134,"):
        directory(tmp_path, (8, 8, 3))


@pytest.mark.parametrize("name", ["b.png", "labels.txt"])
def test_a_pipe_in_a_folder_is_refused(tmp_path, name):
    folder(tmp_path, {"a.png": encoded(0)})
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match=rf"{name}: found no regular file"):
        directory(tmp_path, SHAPE)
