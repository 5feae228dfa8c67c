"""Checkpoints of the CUDA original become models that go on as it would; what is none, or was altered, is refused."""

import io
import json
import pickle
import re
import struct
import zipfile

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.pvm.evaluate import opened
from hybrid.pvm.originals import checkpoint
from hybrid.pvm.originals.checkpoint import model, read
from hybrid.train import runs
from tests.golden import as_original
from tests.support.hostile_pickles import EVIL
from tests.support.original_files import SAVED, attributes, changed, readouts, save, trained, units
from tests.twins.configurations import CUDA
from tests.twins.pvm_cuda import SLOTS, Readout


def goes_on(pvm, twin, shown):
    """Both see the rest; every number is held against the twin's."""
    near, pvm = {"rtol": 0, "atol": 2e-6}, as_original(pvm)
    twin.readout_rate = np.float32(10 * float(twin.rate[0]))  # when the original loads a file
    for image, label in shown:
        step = twin.step
        seen = pvm.step(image, [label] if pvm.readouts else None)
        twin.frame(image, label)
        layout, tape = pvm.layout, pvm.fetch()[f"tape_{step % 3}"][0]
        places = zip(layout.tape_at[:-1], layout.hidden_at, layout.predicted_at, strict=True)
        for u, (at, hidden, predicted) in enumerate(places):
            x, z, y = (part[step % SLOTS] for part in (twin.input, twin.hidden, twin.output))
            d, o = twin.input_dim[u], twin.output_dim[u]
            np.testing.assert_allclose(tape[at : at + d], twin.outer(x, u)[:d], **near)
            np.testing.assert_allclose(tape[hidden : hidden + twin.h], twin.inner(z, u)[: twin.h], **near)
            np.testing.assert_allclose(tape[predicted : predicted + o], twin.outer(y, u)[:o], **near)
        if pvm.readouts:
            np.testing.assert_allclose(seen.heatmap, ((twin.heatmap - 0.1) / 0.8).clip(0, 1), **near)
        assert pvm.tick == twin.step
    arrays = pvm.fetch()
    for ours, theirs in (("weights", twin.weights), ("velocity", twin.velocity)):
        both = [twin.matrices(theirs, u) for u in range(len(twin.units))]
        np.testing.assert_allclose(arrays[ours], packed(both, twin.h), **near)
    if pvm.readouts:
        own = twin.readout
        for ours, theirs in (("weights", (own.w0, own.w1)), ("velocity", (own.v0, own.v1))):
            both = [own.matrices(i, *theirs) for i in range(len(own.tiles))]
            np.testing.assert_allclose(arrays[f"readout.{ours}"], packed(both, own.hidden), **near)


def packed(matrices, h):
    """Each matrix, and behind it what was its column of biases: the last, and number h."""
    parts = ((one[:, :-1], one[:, -1], np.delete(other, h, 1), other[:, h]) for one, other in matrices)
    return np.concatenate([part.ravel() for each in parts for part in each])


@pytest.mark.parametrize(("letter", "frames"), [*((letter, SAVED) for letter in sorted(CUDA)), ("A", 0), ("A", 1)])
def test_it_goes_on_as_the_original(tmp_path, letter, frames):
    twin, shown = trained(letter, frames)
    assert (twin.trained == 2) == (frames == SAVED)
    pvm = model(read(save(tmp_path / "Sim.zip", twin)))
    assert (pvm.config.name, pvm.tick, pvm.dtype) == ("small", frames, np.float32)
    goes_on(pvm, twin, shown)


@pytest.mark.parametrize(("protocol", "numpy_1"), [(2, True), (3, False), (4, True), (5, False)])
def test_pickles_of_every_protocol_and_numpy_say_the_same(no_pickle, tmp_path, whole, protocol, numpy_1):
    path = save(tmp_path / "Sim.zip", trained()[0], protocol=protocol, numpy_1=numpy_1)
    with zipfile.ZipFile(path) as file:
        assert (b"numpy.core." in file.read("pvm/input_mem_activation.pkl")) == numpy_1
    found, expected = read(path), read(whole)
    assert (found.config, found.notes, found.step) == (expected.config, expected.notes, expected.step)
    assert {n: a.tobytes() for n, a in found.arrays.items()} == {n: a.tobytes() for n, a in expected.arrays.items()}


def test_a_file_saved_by_key_while_its_frame_is_shown_counts_that_frame_again(tmp_path):
    twin, shown = trained()
    twin.step -= 1
    state = units(twin)
    twin.step += 1
    state |= {"buffer_index": 0, "dweight_memory_0": state["dweight_memory_1"], "dweight_memory_1": twin.velocity}
    own, nets, layers = readouts(twin)
    with zipfile.ZipFile(tmp_path / "Sim.zip", "a") as file:
        attributes(file, "pvm", state)
        attributes(file, "readout", own)
        for k, layer in enumerate(layers):
            attributes(file, "mlp/objects", layer, f"_{k:02d}")
        attributes(file, "mlp", nets)
    twin.step -= 1
    goes_on(model(read(tmp_path / "Sim.zip")), twin, shown)


def test_rates_and_momenta_set_by_hand_become_events(tmp_path):
    twin, shown = trained()
    of = np.array([unit.layer for unit in twin.units])
    twin.rate[:], twin.momentum[of == 1] = 0.013, 0.5
    found = read(save(tmp_path / "Sim.zip", twin))
    plain = read(save(tmp_path / "plain.zip", trained()[0])).config
    planned = checkpoint.originals.read(twin.config, "small", wiring="cuda")[0]
    assert plain.schedule == planned.schedule and plain.readout.schedule == planned.readout.schedule
    events = [(7, layer, 0.013, momentum) for layer, momentum in enumerate((0.3, 0.5, 0.3, 0.0))]
    assert found.config.schedule == (*plain.schedule, *events)
    assert found.config.readout.schedule == (*plain.readout.schedule, (7, 0.13))
    goes_on(checkpoint.model(found), twin, shown)


@pytest.mark.parametrize(
    ("letter", "frozen", "said"),
    [("A", True, "rates: all 0 at this step, saved while it was frozen"), ("C", False, "readout: none in this file")],
)
def test_a_file_without_readouts_and_one_without_rates_until_the_next_switch(tmp_path, letter, frozen, said):
    twin, shown = trained(letter)
    if frozen:
        twin.rate[:] = twin.momentum[:] = 0
    found = read(save(tmp_path / "Sim.zip", twin, with_readouts=False))
    assert found.config.readout is None and any(note.startswith(said) for note in found.notes)
    goes_on(checkpoint.model(found), twin, shown)


def test_the_activation_is_that_of_the_run_not_of_specs_exchanged_later(tmp_path, whole):
    path = changed(whole, tmp_path / "Sim.zip", "pvm/poly.pkl", pickle.dumps(False))
    assert (read(whole).config.activation, read(path).config.activation) == ("rational", "logistic")


def test_readouts_of_other_sizes_than_the_specs_say(tmp_path):
    twin, shown = trained()
    rng = np.random.default_rng(6)
    twin.readout = Readout(twin.units, twin.side, 3, 7, 0.4, np.float32)  # as for CamVid: 8 x 8 pixels, 150 hidden
    twin.readout.allocate([twin.h] * len(twin.units))
    twin.readout.initialise(rng)
    pvm = model(read(save(tmp_path / "Sim.zip", twin)))
    assert (pvm.config.readout.hidden, pvm.config.readout.block, pvm.config.readout.momentum) == ((7,), ((3, 3),), 0.4)
    goes_on(pvm, twin, [(image, rng.random((12, 12), np.float32)) for image, _ in shown])


def test_a_run_made_of_a_file_is_watched_and_goes_on(tmp_path, whole, capsys):
    command = ["pvm", "import", str(whole), "--out", str(tmp_path / "run"), "--video", "synthetic:3", "--json"]
    assert main(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["step"], report["notes"]) == (SAVED, read(whole).notes)
    pvm, _ = opened(tmp_path / "run", {"device": "cpu", "threads": None})
    expected = model(read(whole))
    assert pvm.config == expected.config and pvm.tick == SAVED
    assert {n: a.tobytes() for n, a in pvm.fetch().items()} == {n: a.tobytes() for n, a in expected.fetch().items()}
    assert runs.resume(tmp_path / "run", {"steps": SAVED + 2, "device": "cpu"})["steps"] == SAVED + 2
    assert main(command) == 2 and "holds a run" in capsys.readouterr().err


LOOP = [1]
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("pvm/specs.pkl", EVIL, "refused this pickle: opcode STACK_GLOBAL at byte .* it names 'posix.system'"),
        ("mlp/objects/mweight_mem_01.npy", None, "missing"),
        ("pvm/step.pkl", pickle.dumps("7"), "found a str, expected a whole number"),
        ("pvm/step.pkl", pickle.dumps(-1), "found -1"),
        ("pvm/buffer_index.pkl", pickle.dumps(2), "found 2"),
        ("mlp/max_layers.pkl", pickle.dumps(3), "not built yet"),
        ("pvm/specs.pkl", pickle.dumps([]), "found a list, expected the options of a model"),
        ("pvm/graph.pkl", pickle.dumps([{}] * 3), "expected a list of 30 units"),
        ("pvm/graph.pkl", pickle.dumps([{}] * 30), "other primary_sources of unit 0"),
        ("pvm/weight_memory_main.npy", b"1234" * 9, "found 36 bytes"),
        ("pvm/dweight_memory_0.npy", b"\0" * 2**24, "found 16777216 bytes, expected at most"),
        ("pvm/learning_rate_arr.npy", np.full(30, np.nan, np.float32).tobytes(), "found NaN"),
        ("pvm/learning_rate_arr.npy", np.arange(30, dtype="f4").tobytes(), "expected the same throughout a layer"),
        ("pvm/learning_rate_arr.npy.meta", pickle.dumps([(30,), np.dtype("f8")]), r"found float64 \(30,\)"),
        ("pvm/learning_rate_arr.npy.meta", pickle.dumps([(30,)]), "expected a list of shape and dtype"),
        ("pvm/input_mem_activation.pkl", pickle.dumps([np.ones(5, np.float32)] * 3), r"found float32 \(5,\)"),
        ("pvm/input_mem_activation.pkl", pickle.dumps(np.ones(10**6)), "expected at most"),
        ("mlp/objects/shape1_00.npy", np.ones(16, np.int32).tobytes(), "found other sizes"),
        ("mlp/objects/weight_mem_00.npy", b"1234" * 9, r" and _01: found \d+ bytes, expected \d+"),
        ("pvm/specs.pkl", pickle.dumps({"layer_shapes": "x" * 2**21}), "expected at most 1048576"),
        ("pvm/specs.pkl", pickle.dumps({"layer_shapes": LOOP}), "layer_shapes: found a list, expected words"),
    ],
)
def test_what_is_refused(no_pickle, tmp_path, whole, name, data, message):
    path = changed(whole, tmp_path / "Sim.zip", name, data)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: {re.escape(name)}.*{message}"):
        model(read(path))


GIANTS = [("layer_shapes", ["100000", "1"]), ("layer_shapes", ["4"] * 10**5)]
GIANTS += [("fan_in_square_size", "1000000"), ("hidden_block_size", "100000")]


@pytest.mark.parametrize(("option", "value"), GIANTS)
def test_specs_of_a_giant_are_refused_before_anything_is_made_of_them(tmp_path, whole, option, value):
    specs = trained(frames=0)[0].config | {option: value}
    path = changed(whole, tmp_path / "Sim.zip", "pvm/specs.pkl", pickle.dumps(specs))
    message = r"pvm/specs.pkl: .* found \d+, expected a whole number from 1 to \d+|Sim.zip: grids: found 100,000 layers"
    with pytest.raises(ValueError, match=message):
        read(path)


def test_weights_that_a_zip_makes_much_smaller_are_no_weights(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(checkpoint, "MOST_SQUEEZED", 0.01)
    with pytest.raises(ValueError, match=r"pvm/weight_memory_main.npy: numbers: found \d+, expected a whole number"):
        read(whole)


def entry(data, name, at, value):
    """The zip, of which the directory says something else of a member."""
    at += data.rindex(name) - 46
    return data[:at] + value + data[at + len(value) :]


def bad_zips(data):
    """Forms of a zip that are refused, and what is said of them."""
    for length in (0, 10, len(data) // 2, len(data) - 30):
        yield data[:length], r"bad.zip: found no valid zip \(.*expected Sim_"
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        info = file.getinfo("pvm/weight_memory_main.npy")
    middle = info.header_offset + info.compress_size // 2
    damaged = data[:middle] + bytes(64) + data[middle + 64 :]
    yield damaged, r"pvm/weight_memory_main.npy: found it damaged \(.*\), expected it intact"
    yield entry(data, b"pvm/specs.pkl", 24, struct.pack("<I", 10)), "pvm/specs.pkl: found"  # its size once unpacked
    yield entry(data, b"pvm/step.pkl", 8, b"\1"), "pvm/step.pkl: .*expected deflated"  # it is locked
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("pvm/step.pkl", pickle.dumps(7))
    yield packed.getvalue(), "pvm/step.pkl: .*expected deflated"


def test_zips_that_are_cut_damaged_or_lie_are_refused(tmp_path, whole):
    path = tmp_path / "bad.zip"
    for data, message in bad_zips(whole.read_bytes()):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=message):
            read(path)
    with pytest.raises(FileNotFoundError, match=r"none.zip"):
        read(tmp_path / "none.zip")
