import struct
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.feeds.video.clip import labels_beside
from hybrid.feeds.video.clips import video_file
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.clips.video_file import Video

SHAPE, COUNT = (24, 32, 3), 40
SCENE = Scene((48, 64, 3), COUNT)
CODECS = {
    "a.mp4": ("libx264", "yuv420p"),
    "a.mkv": ("libx264", "yuv420p"),
    "a.h264": ("libx264", "yuv420p"),
    "a.avi": ("mpeg4", "yuv420p"),
    "a.webm": ("libvpx", "yuv420p"),
    "a.mpg": ("mpeg1video", "yuv420p"),  # whose frames have wrong time stamps after a seek
}


def record(path, codec=None, options=None):
    """A film of the scene."""
    import av

    codec, pixels = codec or CODECS[path.name]
    with av.open(str(path), "w", options=options or {}) as container:
        stream = container.add_stream(codec, rate=25)
        stream.height, stream.width, stream.pix_fmt = 48, 64, pixels
        stream.codec_context.gop_size, stream.codec_context.max_b_frames, stream.bit_rate = 3, 2, 4_000_000
        for number in range(COUNT):
            picture = av.VideoFrame.from_ndarray(SCENE[number].image, format="rgb24").reformat(format=pixels)
            picture.pts, picture.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def images(clip, order):
    return {int(number): clip[int(number)].image for number in order}


@pytest.fixture(scope="module")
def originals():
    from PIL import Image

    frames = [Image.fromarray(SCENE[number].image) for number in range(COUNT)]
    return np.array([frame.resize((32, 24), Image.Resampling.BICUBIC) for frame in frames], float)


def packets(path):
    """Of a film's frames in file order: where they stand, their size, their number, whether they are key frames."""
    import av

    with av.open(str(path)) as container:
        found = [packet for packet in container.demux(video=0) if packet.size]
        return [(p.pos, p.size, round(p.pts * p.time_base * 25), p.is_keyframe) for p in found]


@pytest.mark.parametrize("name", CODECS)
def test_frames_in_order_and_in_any_order(tmp_path, monkeypatch, name, originals):
    path = record(tmp_path / name)
    clip = Video(path, SHAPE)
    assert (len(clip), clip.rate, clip.shape) == (COUNT, 25, SHAPE)
    ordered = images(clip, range(COUNT))
    for number, image in ordered.items():
        assert (image.shape, image.dtype) == (SHAPE, np.uint8)
        assert np.abs(originals - image).mean(axis=(1, 2, 3)).argmin() == number  # lossy, but no neighbour of it
    for order, cursors in ((np.random.default_rng(0).permutation(COUNT), 3), (range(COUNT - 1, -1, -1), 1)):
        monkeypatch.setattr(video_file, "CURSORS", cursors)
        for number, image in images(Video(path, SHAPE), order).items():
            np.testing.assert_array_equal(image, ordered[number])


def test_labels_come_to_the_size_delivered(tmp_path):
    path = record(tmp_path / "a.mp4")
    boxes = [SCENE[number].box for number in range(COUNT)]
    (tmp_path / "a.txt").write_text("".join(",".join(map(str, box)) + "\n" if box[2] else "\n" for box in boxes))
    clip = Video(path, SHAPE, labels=labels_beside(path))
    for number in (0, 7, COUNT - 1):
        np.testing.assert_allclose(clip[number].box, boxes[number] / 2, rtol=1e-5)
    assert Video(path, SHAPE)[0].box is None
    (tmp_path / "a.txt").write_text("1,1,1,1\n")
    with pytest.raises(ValueError, match=f"a.txt: 1 lines, expected {COUNT}"):
        Video(path, SHAPE, labels=labels_beside(path))
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(ValueError, match=r"found both a.txt and a.csv"):
        labels_beside(path)


@pytest.mark.parametrize(("name", "number"), [("a.mp4", 1), ("a.avi", COUNT - 1)])
def test_cut_short_where_the_header_tells(tmp_path, name, number):
    path = record(tmp_path / name, options={"movflags": "faststart"} if name == "a.mp4" else None)
    at, size, *_ = packets(path)[number]
    path.write_bytes(path.read_bytes()[: at + size // 2])
    found = rf"frame \d+ is incomplete|its header says {COUNT} frames, but it ends after \d+"
    with pytest.raises(ValueError, match=f"{name}: ({found}).*ffmpeg -i"):
        Video(path, SHAPE)


def test_cut_short_where_only_the_time_tells(tmp_path, capsys):
    path = record(tmp_path / "a.mkv", ("mpeg4", "yuv420p"))
    whole = images(Video(path, SHAPE), range(5))
    nearly, far = (path.read_bytes()[: packets(path)[count][0]] for count in (20, 9))
    path.write_bytes(nearly)
    assert len(Video(path, SHAPE)) == 20
    assert capsys.readouterr().err == "", "a second may be the sound's, or an inexact header"
    path.write_bytes(far)
    clip = Video(path, SHAPE)
    assert len(clip) == 9
    assert "header says 1.6 s, but its pictures end at 0.4 s; it has 9 frames" in capsys.readouterr().err
    for number, image in images(clip, range(5)).items():
        np.testing.assert_array_equal(image, whole[number])


def test_corrupt_in_the_middle(tmp_path):
    """Frames before the damage stay right, also after the error; the damaged one is named."""
    path = record(tmp_path / "a.mp4")
    whole = images(Video(path, SHAPE), range(COUNT))
    at, size, number, _ = next(packet for packet in packets(path)[10:] if packet[3])
    data = bytearray(path.read_bytes())
    data[at : at + size] = bytes([255]) * size
    path.write_bytes(data)
    clip = Video(path, SHAPE)
    message = rf"a.mp4: frame {number} of {COUNT} cannot be decoded .*corrupt.*ffmpeg -i"
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            clip[number]
        for good in (0, 5, COUNT - 1):
            np.testing.assert_array_equal(clip[good].image, whole[good])


def test_turned_as_the_telephone_was(tmp_path):
    """A display matrix that turns a quarter clockwise."""
    path = record(tmp_path / "a.mp4")
    lying = Video(path, (48, 64, 3))[2].image
    data = bytearray(path.read_bytes())
    header = data.index(b"tkhd") + 4
    one = 1 << 16
    data[header + 40 : header + 76] = struct.pack(">9i", 0, one, 0, -one, 0, 0, 48 * one, 0, 1 << 30)
    path.write_bytes(data)
    np.testing.assert_array_equal(Video(path, (64, 48, 3))[2].image, np.rot90(lying, -1))


def test_files_refused(tmp_path):
    import av

    (tmp_path / "cut.mp4").write_bytes(record(tmp_path / "a.mp4").read_bytes()[:500])
    with pytest.raises(ValueError, match=r"cut.mp4: cannot be opened as a video"):
        Video(tmp_path / "cut.mp4", SHAPE)
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=44100)
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 44100
        container.mux(stream.encode(sound))
        container.mux(stream.encode())
    with pytest.raises(ValueError, match=r"sound.mp4: no pictures in it, only audio"):
        Video(tmp_path / "sound.mp4", SHAPE)


def test_a_playlist_sends_nobody_elsewhere(tmp_path):
    """FFmpeg would know this by its content, whatever its name, and go there."""
    lines = "#EXTM3U", "#EXT-X-TARGETDURATION:4", "#EXTINF:4,", "http://127.0.0.1:9/a.ts", "#EXT-X-ENDLIST", ""
    (tmp_path / "a.mp4").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"a.mp4: "):
        Video(tmp_path / "a.mp4", SHAPE)


@pytest.mark.parametrize(("average", "guessed", "rate"), [(24, 30, 24), (None, 30, 30), (None, None, 25)])
def test_a_rate_that_is_not_stated_is_guessed(average, guessed, rate):
    assert video_file.frame_rate(SimpleNamespace(average_rate=average, guessed_rate=guessed)) == rate
