from itertools import pairwise

import numpy as np
import pytest

from hybrid.feeds.video.clips.synthetic import GREY, Scene


@pytest.mark.parametrize("shape", [(60, 60, 3), (40, 17, 3), (1, 1, 3)])
def test_every_shape(shape):
    scene = Scene(shape, 60, seed=3)
    for number in range(60):
        frame = scene[number]
        assert (frame.image.shape, frame.image.dtype) == (shape, np.uint8)
        assert (frame.box.shape, frame.box.dtype) == ((4,), np.float32)
        assert (frame.box[:2] >= 0).all()
        assert (frame.box[:2] + frame.box[2:] <= np.array(shape[1::-1]) + 1e-4).all()


def test_the_box_surrounds_what_is_seen_of_the_target():
    """The target is the only thing with much red and green and next to no blue."""
    scene, hits = Scene((60, 60, 3), 300), 0
    frames = [scene[number] for number in range(300)]
    for image, box in frames:
        y, x = np.nonzero((image[..., 2] < 45) & (image[..., 0] > 120) & (image[..., 1] > 100))
        if box[2] < 4 or box[3] < 4:  # a sliver is softer than its box
            assert len(x) < (4 * 20 if box.any() else 10)
            continue
        found = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
        np.testing.assert_allclose(found, [*box[:2], *(box[:2] + box[2:])], atol=1.6)
        hits += 1
    assert hits > 150
    assert all((one.image != other.image).any() for one, other in pairwise(frames)), "nothing stands still"


@pytest.mark.parametrize(
    ("number", "sums", "box"),
    [
        (0, [218, 373, 228, 216, 64, 437, 410, 342, 426, 193, 383, 219], [14.28, 0.42, 7.66, 7.66]),
        (47, [513, 135, 279, 346, 418, 406, 383, 479, 290, 436, 415, 272], [3.82, 12.91, 7.66, 7.66]),
    ],
)
def test_the_scene_of_a_seed_stays_what_it_is(number, sums, box):
    """Of every eighth pixel the sum of its colours: what is learned from it is compared with recordings."""
    frame = Scene((24, 32, 3), 100, seed=4)[number]
    np.testing.assert_allclose(frame.image[::8, ::8].sum(-1, dtype=int).ravel(), sums, atol=3)
    np.testing.assert_allclose(frame.box, box, atol=0.01)


def test_grey_is_the_grey_of_the_colours():
    colour, grey = Scene((20, 30, 3), 5)[4].image, Scene((20, 30, 1), 5)[4].image
    np.testing.assert_allclose(grey[..., 0], colour @ GREY, atol=1.01)
