"""Whatever gives frames can be run through, and what fails while giving them leaves the model whole."""

import dataclasses

import numpy as np
import pytest

from hybrid.feeds.video.clip import Frame
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.frames import Frames
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.model import PVM

TINY = Config(
    grids=((3, 4), (1, 1)),
    block=(2, 3),
    hidden=(5, 4),
    schedule=((0, None, 0.05, 0.3),),
    readout=Readout(hidden=(6,), schedule=((0, 0.5),)),
)
FRAMES = np.random.default_rng(0).integers(0, 256, (7, *TINY.frame)).astype(np.uint8)
BOXES = [np.array([x, 1, 4, 3], np.float32) for x in range(len(FRAMES))]


class Unlisted:
    """A sequence by its length and items alone, as readers of videos are; it raises no IndexError at its end."""

    def __len__(self):
        return len(FRAMES)

    def __getitem__(self, number):
        return FRAMES[number % len(FRAMES)]


def ended(model, frames):
    """The bytes of the weights, readouts' included, and the last prediction, when all is seen."""
    seen = list(model.run(frames))
    state = model.fetch()
    return [state[name].tobytes() for name in ("weights", "readout.weights")] + [
        seen[-1].prediction.tobytes(),
        len(seen),
    ]


def stepped(frames, labels=None, **settings):
    model = PVM(TINY, **settings)
    for at, frame in enumerate(frames):
        seen = model.step(frame, labels and labels[at])
    state = model.fetch()
    return [state[name].tobytes() for name in ("weights", "readout.weights")] + [seen.prediction.tobytes(), len(frames)]


@pytest.mark.parametrize(
    "frames",
    [FRAMES, list(FRAMES), (frame for frame in FRAMES), Unlisted(), [frame / 255 for frame in FRAMES]],
    ids=["array", "list", "generator", "sequence", "floats"],
)
def test_any_iterable_of_frames_is_stepped_through(frames):
    found, expected = ended(PVM(TINY), frames), stepped(list(FRAMES))
    if isinstance(frames, list) and frames[0].dtype != np.uint8:
        found, expected = found[-1:], expected[-1:]  # 1/255 rounds otherwise
    assert found == expected


def test_pairs_bring_labels():
    assert ended(PVM(TINY), zip(FRAMES, BOXES, strict=True)) == stepped(FRAMES, BOXES)
    assert ended(PVM(TINY), (Frame(*pair) for pair in zip(FRAMES, BOXES, strict=True))) == stepped(FRAMES, BOXES)
    assert stepped(FRAMES, BOXES)[1] != stepped(FRAMES)[1]


def test_several_streams_come_as_one_array_a_tick():
    pairs = [FRAMES[tick : tick + 2] for tick in range(6)]
    labels = [BOXES[tick : tick + 2] for tick in range(6)]
    assert ended(PVM(TINY, streams=2), iter(pairs)) == stepped(pairs, streams=2)
    assert ended(PVM(TINY, streams=2), zip(pairs, labels, strict=True)) == stepped(pairs, labels, streams=2)


def test_an_iterable_goes_on_and_a_feed_begins_where_the_model_stands():
    model = PVM(TINY)
    assert [seen.tick for seen in model.run(iter(FRAMES[:3]))] == [0, 1, 2]
    assert [seen.tick for seen in model.run(FRAMES[:2])] == [3, 4]
    assert [seen.tick for seen in model.run(Frames([Scene(TINY.frame)], 7))] == [5, 6]
    assert list(model.run([])) == [] and model.step_number == 7


@pytest.mark.parametrize("failure", [OSError("the disk is gone"), "shape", "numbers"])
def test_what_fails_while_giving_frames_leaves_the_model_between_two_ticks(failure, tmp_path):
    def broken():
        yield from FRAMES[:3]
        if isinstance(failure, Exception):
            raise failure
        yield FRAMES[0][:, :-1] if failure == "shape" else FRAMES[0] / 2.0

    model = PVM(TINY)
    with pytest.raises((OSError, ValueError)) as caught:
        list(model.run(broken()))
    assert caught.value.__notes__ == ["in the feed, at tick 3"]
    assert model.step_number == 3
    model.save(tmp_path)
    for one in (model, PVM.load(tmp_path)[0]):
        list(one.run(iter(FRAMES[3:])))
        assert one.fetch()["weights"].tobytes() == stepped(FRAMES)[0]


def test_what_gives_no_frames_is_refused_and_changes_nothing():
    model = PVM(TINY)
    for frames, found in ((5, "frames: found int"), (None, "frames: found NoneType"), ([None], "frame: found")):
        with pytest.raises(ValueError, match=found):
            list(model.run(frames))
    with pytest.raises(ValueError, match="frame: found shape"):
        list(model.run(FRAMES[0]))
    assert ended(model, FRAMES) == stepped(list(FRAMES))


def test_pictures_of_pillow_and_nested_lists_are_frames():
    from PIL import Image

    def last(frame):
        return PVM(dataclasses.replace(TINY, readout=None)).step(frame).prediction.tobytes()

    assert last(Image.fromarray(FRAMES[0])) == last(FRAMES[0])
    halves = np.full(TINY.frame, 0.5)
    assert last(halves.tolist()) == last(halves)
