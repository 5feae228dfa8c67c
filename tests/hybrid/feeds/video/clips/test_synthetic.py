import numpy as np
import pytest

from hybrid.feeds.video.clips import synthetic
from hybrid.feeds.video.clips.synthetic import GREY, TARGET, Scene

SHAPE = (60, 60, 3)


@pytest.fixture(scope="module")
def frames():
    scene = Scene(SHAPE, 300)
    return [scene[number] for number in range(300)]


@pytest.mark.parametrize("shape", [(60, 60, 3), (40, 17, 3), (1, 1, 3)])
def test_every_shape(shape):
    scene = Scene(shape, 60, seed=3)
    for number in range(60):
        frame = scene[number]
        assert (frame.image.shape, frame.image.dtype) == (shape, np.uint8)
        assert (frame.box.shape, frame.box.dtype) == ((4,), np.float32)
        assert (frame.box[:2] >= 0).all()
        assert (frame.box[:2] + frame.box[2:] <= np.array(shape[1::-1]) + 1e-4).all()


def test_the_box_surrounds_what_is_seen_of_the_target(frames):
    """The target is the only thing with much red and green and next to no blue."""
    hits = 0
    for image, box in frames:
        y, x = np.nonzero((image[..., 2] < 45) & (image[..., 0] > 120) & (image[..., 1] > 100))
        if box[2] < 4 or box[3] < 4:  # a sliver is softer than its box
            assert len(x) < (4 * 20 if box.any() else 10)
            continue
        found = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
        np.testing.assert_allclose(found, [*box[:2], *(box[:2] + box[2:])], atol=1.6)
        hits += 1
    assert hits > 150


def test_nothing_stands_still_and_not_all_goes_one_way():
    scenes = [Scene((6, 6, 3), seed=seed) for seed in range(20)]
    for turns in ([scene._spin for scene in scenes], [scene._scroll for scene in scenes]):
        assert set(np.sign(turns).ravel()) == {-1, 1}
    assert min(scene._speed.min() for scene in scenes) > 0


def test_grey_is_the_grey_of_the_colours():
    colour, grey = Scene((20, 30, 3), 5)[4].image, Scene((20, 30, 1), 5)[4].image
    np.testing.assert_allclose(grey[..., 0], colour @ GREY, atol=1.01)


def test_target_colour_is_drawn(frames):
    frame = max(frames, key=lambda frame: frame.box[2])
    x, y = (frame.box[:2] + frame.box[2:] / 2).astype(int)
    red, green, blue = frame.image[y, x] / 255
    np.testing.assert_allclose([green / red, blue / red], [TARGET[1], TARGET[2]], atol=0.02)


@pytest.mark.parametrize(
    "arguments, message",
    [({"length": 0}, "length: found 0"), ({"seed": -1}, "seed: found -1"), ({"shape": (0, 1, 3)}, "rows")],
)
def test_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Scene(**{"shape": SHAPE} | arguments)


def test_the_triangle_has_equal_sides():
    """Its corners lie on the circle, and its edges half as far from the centre."""
    angle = 2 * np.pi / 3 * np.arange(3)
    corners, middles = (np.array([np.cos(turned), np.sin(turned)]) for turned in (angle, angle + np.pi / 3))
    for at in (10 * corners, 5 * middles):
        np.testing.assert_allclose(synthetic._triangle(*at, 10), 0, atol=1e-5)


def test_the_triangle_goes_round_the_box_stays_in_the_picture_and_the_target_leaves_it_at_the_sides():
    scene = Scene((60, 80, 3), seed=0)
    for body, reach in ((0, (0.64, 0.64)), (1, (0.8, 0.8)), (2, (1.7, 1.0))):
        at = np.array([scene._centre(number, body) for number in range(4000)]) / (80, 60)
        np.testing.assert_allclose(np.ptp(at, axis=0), reach, atol=0.02)
        np.testing.assert_allclose((at.min(axis=0) + at.max(axis=0)) / 2, 0.5, atol=0.02)


def test_a_body_is_painted_to_its_edge_on_all_sides():
    scene, seen = Scene((60, 80, 3), 30), 0
    for number in range(30):
        picture = np.zeros((60, 80, 3), np.float32)
        scene._draw(picture, number, 0, lambda along, across, radius: np.hypot(along, across) - radius, np.ones(3))
        (x, y), radius = scene._centre(number, 0), scene._radius[0]
        for at, middle in zip(np.nonzero(picture.any(axis=2)), (y, x), strict=True):
            if radius + 1 <= middle <= 59 - radius:
                assert at.min() < middle - radius and at.max() + 1 > middle + radius
                seen += 1
    assert seen > 10
