"""What models that are gone leave on a device: no memory, no stream or graph, and every event back in stock."""

import gc
import itertools

import pytest

from hybrid import backend
from hybrid.engine import Engine
from hybrid.pvm.model import PVM
from tests import cudasim
from tests.support.placed_engine import Ragged, placed
from tests.support.small_pvm import TINY, Scene

TICKS, FRAMES = 8, 12


def use(folder):
    """Train, stop, save, load and go on; an engine with all on the device, and a PVM whose frames become graphs."""
    trained = placed(readout="device", bags=True, micro_batches=2)
    list(itertools.islice(trained.run(Ragged(TICKS)), TICKS // 2))
    trained.save(folder / "engine")
    places = {"rows_device": "cuda:0", "readout_device": "cuda:0"}
    resumed, _ = Engine.load(folder / "engine", device="cuda:0", threads=2, **places)
    list(resumed.run(Ragged(TICKS)))
    resumed.evaluate(Ragged(2))
    model = PVM(TINY, device="cuda:0", threads=1)
    list(model.run(Scene(FRAMES), ahead=2, every=3))
    model.save(folder / "pvm")
    list(PVM.load(folder / "pvm", device="cuda:0", threads=1)[0].run(Scene(FRAMES + 2)))


def left(device):
    """What is allocated when all that is past has been freed."""
    for _ in range(3):  # page-locked memory goes at a later call
        gc.collect()
        device.to_host(device.empty(1, "uint8"))
    gc.collect()
    device.owner.call(device.context.synchronize)
    stock = sum(map(len, device._marks.values()))
    return {name: count for name, count in device.allocated.items() if count}, cudasim.live(), stock


@pytest.mark.slow
def test_models_that_are_gone_leave_nothing_on_the_device(simulated, cuda, tmp_path, monkeypatch):
    from pycuda import driver

    device, made, event = backend.choose(cuda).device, [], driver.Event
    use(tmp_path)  # kernels are loaded
    before, live, stock = left(device)
    monkeypatch.setattr(driver, "Event", lambda *flags: made.append(1) or event(*flags))
    for _ in range(2):
        use(tmp_path)
    found, live_now, stock_now = left(device)
    assert (found, live_now) == (before, live)
    assert stock_now - stock == len(made)
