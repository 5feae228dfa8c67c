"""Units of the classic original that go on learn first what they stopped at."""

import dataclasses

from hybrid.pvm import resumed
from hybrid.pvm.model import PVM
from tests.support.small_pvm import BLIND, Scene, bytes_of, walk


def test_what_a_layer_stopped_at_is_saved_and_learned_when_it_goes_on(tmp_path):
    """The classic original keeps what a layer stopped at, and goes on with it."""
    schedule = ((0, None, 0.05, 0.3), (4, 1, 0.0, None), (8, 1, 0.05, None))
    fields = {"wiring": "classic", "squeeze": False, "compat": "classic2016", "schedule": schedule}
    config = dataclasses.replace(BLIND, **fields)
    model, feed = PVM(config), Scene(12)
    walk(model, feed, 6)
    assert model.fetch()["rest_tape"].any()
    model.save(tmp_path)
    walk(model, feed)
    loaded, _ = PVM.load(tmp_path)
    list(loaded.run(feed))
    assert bytes_of(loaded) == bytes_of(model)
    assert resumed.kept(model.layout, config)
    assert "rest_tape" not in PVM(dataclasses.replace(config, compat=None)).fetch()
