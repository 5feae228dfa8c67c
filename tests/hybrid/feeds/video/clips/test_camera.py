import sys

import numpy as np
import pytest

from hybrid.feeds.video.clips.camera import Camera
from hybrid.feeds.video.frames import Frames

SHAPE = (24, 32, 3)


def pattern(seconds):
    import av

    return lambda: av.open(f"testsrc=size=64x48:rate=20:duration={seconds}", format="lavfi")


def test_live_frames(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    camera = Camera(0, SHAPE, opener=pattern(0.5))
    assert camera.rate == 20
    feed = Frames([camera], 10)
    first = feed[0]
    assert first.image.shape == (1, *SHAPE)
    assert not first.labelled.any()
    np.testing.assert_array_equal(feed[0].image, first.image)
    assert (feed[1].image != first.image).any()
    for tick in (0, 3):
        with pytest.raises(ValueError, match=f"/dev/video0: asked for frame {tick} after 1"):
            feed[tick]
    for tick in range(2, 10):
        feed[tick]
    with pytest.raises(OSError, match="/dev/video0: no frame 10 came"):
        camera[10]
    assert feed.describe()["clips"][0]["device"] == "/dev/video0"


def test_a_resumed_run_begins_where_it_is(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    camera = Camera(1, SHAPE, opener=pattern(1))
    assert (camera[500].image == Camera(1, SHAPE, opener=pattern(1))[0].image).all()
    camera[501]


def test_no_camera(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(OSError, match="/dev/video99: no camera can be opened there "):
        Camera(99, SHAPE)
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(OSError, match="camera: not offered on plan9"):
        Camera(0, SHAPE)
