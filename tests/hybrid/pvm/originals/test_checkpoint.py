"""No file of the original is at hand, so these are written here, member by member as its code writes them, from its twin."""

import os
import pickle
import pickletools
import re
import struct
import zipfile
from argparse import Namespace

import numpy as np
import pytest

from hybrid.pvm.judge.evaluate import opened
from hybrid.pvm.originals import checkpoint
from hybrid.pvm.originals.checkpoint import import_simulation, read
from hybrid.pvm.originals.pickles import unpickled
from hybrid.train import runs
from tests.twins.pvm_cuda import SLOTS, CudaModel, Readout
from tests.twins.recordings import CUDA, HIDDEN, video

SAVED, LATER = 7, 10  # frames before the file, and after it
DELAYS = {  # layers begin, and both switches fall, before the file and after it; readouts learn before it too
    "delay_each_layer_learning": "3",
    "delay_intermediate_learning_rate": "4",
    "delay_final_learning_rate": "12",
}


# Files as the original writes them


def dumps(value, protocol=None, numpy_1=False):
    """The pickle of a value; as NumPy before 2 names its parts."""
    data = pickle.dumps(value, protocol)
    if not numpy_1:
        return data
    if data[1] < 4:
        return data.replace(b"cnumpy._core.", b"cnumpy.core.")
    for opcode, _, at in reversed(list(pickletools.genops(data))):
        if opcode.name == "FRAME":  # may be left out; its length would be another
            data = data[:at] + data[at + 9 :]
    return re.sub(
        rb"\x8c(.)numpy\._core\.",
        lambda found: b"\x8c" + bytes([found[1][0] - 1]) + b"numpy.core.",
        data,
        flags=re.DOTALL,
    )


def drop(file, name, data):
    info = zipfile.ZipInfo(name, (2023, 6, 1, 12, 0, 0))
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o777 << 16
    file.writestr(info, data)


def attributes(file, folder, values, suffix="", **how):
    """Arrays with their shape and dtype; all else pickled."""
    for name, value in values.items():
        if type(value) is np.ndarray:
            drop(file, f"{folder}/{name}{suffix}.npy", memoryview(value))
            drop(file, f"{folder}/{name}{suffix}.npy.meta", dumps([value.shape, value.dtype], **how))
        else:
            drop(file, f"{folder}/{name}{suffix}.pkl", dumps(value, **how))


def units(twin):
    """The attributes of the original's units."""
    size, half = len(twin.units), twin.step % 2
    old = np.full_like(twin.velocity, 9)  # one of the two buffers is a step behind
    outer, inner = ([np.ones_like(part[0]) for _ in range(SLOTS)] for part in (twin.input, twin.hidden))
    graph = [
        {
            "base_input_offset": 2 * twin.primary_dim[u] * (unit.layer == 0),
            "output_dim": twin.output_dim[u],
            "base_input_size": twin.primary_dim[u],
            "xs": unit.xs,
            "ys": unit.ys,
            "id": u,
            "type": "hidden",
            "size": twin.h,
            "input_dim": twin.input_dim[u],
            "layer": unit.layer,
            "grid_pos": (unit.x, unit.y),
            "image_pos": None,
            "primary_destinations": [up.id for up in twin.units if u in up.primary],
            "context_destinations": [other.id for other in twin.units if u in other.context],
            "primary_sources": unit.primary,
            "context_sources": unit.context,
            "context_dim": twin.context_dim[u],
            "sources": [],
            "w0_ptr": int(twin.w0_at[u]),
        }
        for u, unit in enumerate(twin.units)
    ]
    return {
        "device": "TITAN X (Pascal)",
        "specs": twin.config,
        "name": "small",
        "uniq_id": "0badcafe",
        "time_stamp": "2023_06_01_12_00_00",
        "poly": twin.config["polynomial"] == "1",
        "total_weights": twin.weights.size,
        "sequence_length": SLOTS,
        "step": twin.step,
        "sequence_interval": 2,
        "graph": graph,
        "learning_rate": float(twin.rate[0]),
        "momentum": 0.9,
        "input_channels": 3,
        "weight_memory_main": twin.weights,
        "dweight_memory_0": twin.velocity if half else old,
        "dweight_memory_1": old if half else twin.velocity,
        "weight_memory_cache0": np.zeros_like(old),
        "buffer_index": half,
        "input_mem_activation": list(twin.input.copy()),
        "input_mem_delta": outer,
        "input_mem_error": outer,
        "output_mem_activation": list(twin.output.copy()),
        "output_mem_delta": list(twin.out_delta.copy()),
        "output_mem_error": list(twin.out_error.copy()),
        "beta_input": outer[0],
        "repre_mem_activation": list(twin.hidden.copy()),
        "repre_mem_delta": inner,
        "repre_mem_error": inner,
        "weight_ptr0": np.array(twin.w0_at, np.int32),
        "weight_ptr1": np.array(twin.w1_at, np.int32),
        "learning_rate_arr": twin.rate,
        "momentum_arr": twin.momentum,
        "shape0_L0": np.full(size, twin.h, np.int32),
    }


def readouts(twin):
    """The attributes of the original's readouts; and of the collection of nets in them: all, and each layer's."""
    readout, tiles, h = twin.readout, len(twin.readout.tiles), twin.readout.hidden
    flipped = twin.trained % 2 == 1
    own = {
        "readout_layer": 2,
        "heatmap_block_size": readout.block,
        "sizes": np.array(readout.sizes),
        "total_units": tiles,
    }
    nets = {
        "layerwise_weight_objects": np.array([tiles, tiles, *[0] * 8], np.int32),
        "flip_buf": flipped,
        "max_layers": 2,
    }
    layers = []
    for weights, velocity, rows, columns in (
        (readout.w0, readout.v0, [h] * tiles, np.add(readout.sizes, 1)),
        (readout.w1, readout.v1, [readout.outputs] * tiles, [h + 1] * tiles),
    ):
        old = np.full_like(velocity, 9)
        layers.append(
            {
                "layer": len(layers),
                "weight_mem": weights,
                "weight_mem_buf": np.zeros_like(old),
                "dweight_mem": velocity if flipped else old,
                "mweight_mem": old if flipped else velocity,
                "shape0": np.array(rows, np.int32),
                "shape1": np.array(columns, np.int32),
                "block_size": 128,
                "learning_rate_mem": np.full(tiles, twin.readout_rate, np.float32),
                "momentum_mem": np.full(tiles, readout.momentum, np.float32),
            }
        )
    return own, nets, layers


def save(path, twin, with_readouts=True, **how):
    """Units, readouts and the nets in them are appended one after the other."""
    with zipfile.ZipFile(path, "a", allowZip64=True) as file:
        attributes(file, "pvm", units(twin), **how)
    if with_readouts:
        own, nets, layers = readouts(twin)
        with zipfile.ZipFile(path, "a", allowZip64=True) as file:
            attributes(file, "readout", own, **how)
        with zipfile.ZipFile(path, "a", allowZip64=True) as file:
            for k, layer in enumerate(layers):
                attributes(file, "mlp/objects", layer, f"_{k:02d}", **how)
            for name, value in nets.items():
                drop(file, f"mlp/{name}.pkl", dumps(value, **how))
            drop(file, "mlp/total_objects_gpu.pkl", EVIL)  # of a class of PyCUDA's: nobody may open it
    return path


def trained(letter="A", frames=SAVED, **options):
    """A twin that has seen frames, and those that come next."""
    rng = np.random.default_rng(5)
    twin = CudaModel(CUDA[letter] | DELAYS | options, np.float32, readout_hidden=HIDDEN)
    twin.initialise(rng)
    images, labels = (part.astype(np.float32) for part in video(rng, frames + LATER, twin.side * twin.block))
    shown = list(zip(images, labels, strict=True))
    twin.trained = 0
    for image, label in shown[:frames]:
        twin.frame(image, label)
        twin.trained += twin.readout_trained
    return twin, shown[frames:]


def changed(source, target, name, data):
    """The same file with other content of a member; None: without it."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            if member != name:
                drop(new, member, old.read(member))
        if data is not None:
            drop(new, name, data)
    return target


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


EVIL = pickle.dumps(Call(os.system, "exit 3"))


def never(*arguments, **named):
    raise AssertionError("something of a file was run")


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    for name in ("system", "popen"):
        monkeypatch.setattr(os, name, never)


@pytest.fixture
def no_pickle(monkeypatch):
    """Nobody unpickles; not for tests that step, since Numba's cache does."""
    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, never)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return save(tmp_path_factory.mktemp("whole") / "Sim_small_0badcafe_000000007.zip", trained()[0])


# It goes on as the original


def goes_on(pvm, twin, shown):
    """Both see the rest; every number is held against the twin's."""
    near = {"rtol": 0, "atol": 2e-6}
    twin.readout_rate = np.float32(10 * float(twin.rate[0]))  # when the original loads a file
    for image, label in shown:
        step = twin.step
        seen = pvm.step(image, [label] if pvm.readouts else None)
        twin.frame(image, label)
        layout, tape = pvm.layout, pvm.fetch()[f"tape_{step % 3}"][0]
        for u, (at, hidden, predicted) in enumerate(
            zip(layout.tape_at[:-1], layout.hidden_at, layout.predicted_at, strict=True)
        ):
            x, z, y = (part[step % SLOTS] for part in (twin.input, twin.hidden, twin.output))
            d, o = twin.input_dim[u], twin.output_dim[u]
            np.testing.assert_allclose(tape[at : at + d], twin.outer(x, u)[:d], **near)
            np.testing.assert_allclose(tape[hidden : hidden + twin.h], twin.inner(z, u)[: twin.h], **near)
            np.testing.assert_allclose(tape[predicted : predicted + o], twin.outer(y, u)[:o], **near)
        if pvm.readouts:
            np.testing.assert_allclose(seen.heatmap, ((twin.heatmap - 0.1) / 0.8).clip(0, 1), **near)
        assert pvm.step_number == twin.step
    arrays = pvm.fetch()
    for ours, theirs in (("weights", twin.weights), ("velocity", twin.velocity)):
        both = [twin.matrices(theirs, u) for u in range(len(twin.units))]
        np.testing.assert_allclose(arrays[ours], packed(both, twin.h), **near)
    if pvm.readouts:
        for ours, theirs in (
            ("weights", (twin.readout.w0, twin.readout.w1)),
            ("velocity", (twin.readout.v0, twin.readout.v1)),
        ):
            both = [twin.readout.matrices(i, *theirs) for i in range(len(twin.readout.tiles))]
            np.testing.assert_allclose(arrays[f"readout.{ours}"], packed(both, twin.readout.hidden), **near)


def packed(matrices, h):
    """Each matrix, and behind it what was its column of biases: the last, and number h."""
    return np.concatenate(
        [
            part.ravel()
            for first, second in matrices
            for part in (first[:, :-1], first[:, -1], np.delete(second, h, 1), second[:, h])
        ]
    )


@pytest.mark.parametrize("letter", sorted(CUDA))
def test_it_goes_on_as_the_original(tmp_path, letter):
    twin, shown = trained(letter)
    assert twin.trained == 2
    pvm = import_simulation(save(tmp_path / "Sim.zip", twin))
    assert (pvm.config.name, pvm.config.compat, pvm.step_number, pvm.dtype) == ("small", "cuda2023", SAVED, np.float32)
    goes_on(pvm, twin, shown)


@pytest.mark.parametrize("frames", [0, 1, 2, 8])
def test_at_any_step(tmp_path, frames):
    twin, shown = trained(frames=frames)
    goes_on(import_simulation(save(tmp_path / "Sim.zip", twin)), twin, shown)


@pytest.mark.parametrize("numpy_1", [False, True])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
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
    state["buffer_index"], state["dweight_memory_0"], state["dweight_memory_1"] = (
        0,
        state["dweight_memory_1"],
        twin.velocity,
    )
    own, nets, layers = readouts(twin)
    with zipfile.ZipFile(tmp_path / "Sim.zip", "a") as file:
        attributes(file, "pvm", state)
        attributes(file, "readout", own)
        for k, layer in enumerate(layers):
            attributes(file, "mlp/objects", layer, f"_{k:02d}")
        attributes(file, "mlp", nets)
    twin.step -= 1
    goes_on(import_simulation(tmp_path / "Sim.zip"), twin, shown)


def test_rates_and_momenta_set_by_hand_become_events(tmp_path):
    twin, shown = trained()
    of = np.array([unit.layer for unit in twin.units])
    twin.rate[:], twin.momentum[of == 1] = 0.013, 0.5
    found = read(save(tmp_path / "Sim.zip", twin))
    plain = read(save(tmp_path / "plain.zip", trained()[0])).config
    assert found.config.schedule == (
        *plain.schedule,
        (7, 0, 0.013, 0.3),
        (7, 1, 0.013, 0.5),
        (7, 2, 0.013, 0.3),
        (7, 3, 0.013, 0.0),
    )
    assert found.config.readout.schedule == (*plain.readout.schedule, (7, 0.13))
    goes_on(checkpoint.model(found), twin, shown)


def test_a_file_as_scheduled_has_no_events_of_its_own(whole):
    config, twin = read(whole).config, trained()[0]
    planned = checkpoint.original.read(twin.config, "small", wiring="cuda", compat="cuda2023")[0]
    assert config.schedule == planned.schedule and config.readout.schedule == planned.readout.schedule
    assert config.readout.hidden == (HIDDEN,)


def test_a_file_saved_while_frozen_stays_without_rates_until_the_next_switch(tmp_path):
    twin, shown = trained()
    twin.rate[:] = twin.momentum[:] = 0
    found = read(save(tmp_path / "Sim.zip", twin, with_readouts=False))
    assert found.notes[-1].startswith("rates: all 0 at this step, saved while it was frozen")
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
    pvm = import_simulation(save(tmp_path / "Sim.zip", twin))
    assert (pvm.config.readout.hidden, pvm.config.readout.block, pvm.config.readout.momentum) == ((7,), ((3, 3),), 0.4)
    goes_on(pvm, twin, [(image, rng.random((12, 12), np.float32)) for image, _ in shown])


def test_a_file_without_readouts_makes_a_model_without(tmp_path):
    twin, shown = trained("C")
    found = read(save(tmp_path / "Sim.zip", twin, with_readouts=False))
    assert found.config.readout is None and any(note.startswith("readout: none in this file") for note in found.notes)
    goes_on(checkpoint.model(found), twin, shown)


def test_corrected_from_here_on_where_the_wiring_is_the_same(whole):
    pvm = import_simulation(whole, compat=None)
    assert pvm.config.compat is None
    assert np.isfinite(pvm.step(np.zeros((8, 8, 3), np.uint8)).error).all()


def test_a_member_that_stands_twice_counts_as_it_was_saved_last(tmp_path, whole):
    path = changed(whole, tmp_path / "Sim.zip", "", None)
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        drop(file, "pvm/step.pkl", pickle.dumps(9))
    assert read(path).step == 9


# A run of it


@pytest.mark.parametrize("corrected", [False, True])
def test_a_run_made_of_a_file_is_watched_and_goes_on(tmp_path, whole, capsys, corrected):
    given = Namespace(file=str(whole), out=str(tmp_path / "run"), corrected=corrected, video="synthetic:3")
    report = checkpoint.into_run(given)
    assert (report["step"], report["notes"]) == (SAVED, read(whole).notes)
    pvm, _ = opened(tmp_path / "run", {"device": "cpu", "threads": None})
    expected = import_simulation(whole, compat=None if corrected else "cuda2023")
    assert pvm.config == expected.config and pvm.step_number == SAVED
    assert {n: a.tobytes() for n, a in pvm.fetch().items()} == {n: a.tobytes() for n, a in expected.fetch().items()}
    assert runs.resume(tmp_path / "run", {"steps": SAVED + 2, "device": "cpu"})["steps"] == SAVED + 2
    with pytest.raises(ValueError, match="holds a run"):
        checkpoint.into_run(given)


# What is refused


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("pvm/specs.pkl", EVIL, "refused this pickle: opcode STACK_GLOBAL at byte .* it names 'posix.system'"),
        ("pvm/graph.pkl", EVIL, "it names 'posix.system'"),
        ("pvm/input_mem_activation.pkl", EVIL, "it names 'posix.system'"),
        ("pvm/weight_memory_main.npy.meta", EVIL, "it names 'posix.system'"),
        ("readout/heatmap_block_size.pkl", EVIL, "it names 'posix.system'"),
        ("mlp/flip_buf.pkl", EVIL, "it names 'posix.system'"),
        ("pvm/specs.pkl", None, "missing"),
        ("pvm/weight_memory_main.npy", None, "missing"),
        ("pvm/weight_memory_main.npy.meta", None, "missing"),
        ("pvm/repre_mem_activation.pkl", None, "missing"),
        ("mlp/objects/mweight_mem_01.npy", None, "missing"),
        ("pvm/step.pkl", pickle.dumps("7"), "found a str, expected a whole number"),
        ("pvm/step.pkl", pickle.dumps(True), "found a bool, expected a whole number"),
        ("pvm/step.pkl", pickle.dumps(-1), "found -1"),
        ("pvm/buffer_index.pkl", pickle.dumps(2), "found 2"),
        ("pvm/poly.pkl", pickle.dumps(1), "found a int, expected a bool"),
        ("mlp/flip_buf.pkl", pickle.dumps(None), "found a NoneType, expected a bool"),
        ("mlp/max_layers.pkl", pickle.dumps(3), "not built yet"),
        ("pvm/specs.pkl", pickle.dumps([]), "found a list, expected the options of a model"),
        ("pvm/specs.pkl", pickle.dumps({"a": "1"}), "found a dict, expected the options of a model"),
        ("pvm/graph.pkl", pickle.dumps([{}] * 3), "expected a list of 30 units"),
        ("pvm/graph.pkl", pickle.dumps([{}] * 30), "other primary_sources of unit 0"),
        ("pvm/weight_memory_main.npy", b"1234" * 9, "found 36 bytes"),
        ("pvm/weight_memory_main.npy", b"\0" * 2**24, "found 16777216 bytes"),
        ("pvm/dweight_memory_0.npy", b"1234" * 9, "found 36 bytes"),
        ("pvm/dweight_memory_0.npy", b"\0" * 2**24, "found 16777216 bytes, expected at most"),
        ("pvm/learning_rate_arr.npy", np.full(30, np.nan, np.float32).tobytes(), "found NaN"),
        (
            "pvm/learning_rate_arr.npy",
            np.arange(30, dtype=np.float32).tobytes(),
            "expected the same throughout a layer",
        ),
        ("pvm/learning_rate_arr.npy", np.full(30, -1, np.float32).tobytes(), "found -1"),
        ("pvm/learning_rate_arr.npy.meta", pickle.dumps([(30,), np.dtype("f8")]), r"found float64 \(30,\)"),
        ("pvm/learning_rate_arr.npy.meta", pickle.dumps([(31,), np.dtype("f4")]), r"found float32 \(31,\)"),
        ("pvm/learning_rate_arr.npy.meta", pickle.dumps([(30,)]), "expected a list of shape and dtype"),
        ("pvm/input_mem_activation.pkl", pickle.dumps([np.ones(5, np.float32)] * 3), r"found float32 \(5,\)"),
        ("pvm/input_mem_activation.pkl", pickle.dumps([np.ones(5, np.float32)] * 2), "expected a list of 3 arrays"),
        ("pvm/input_mem_activation.pkl", pickle.dumps(np.ones(10**6)), "expected at most"),
        ("mlp/objects/shape1_00.npy", np.ones(16, np.int32).tobytes(), "found other sizes"),
        ("mlp/objects/weight_mem_00.npy", b"1234" * 9, r" and _01: found \d+ bytes, expected \d+"),
        ("pvm/specs.pkl", pickle.dumps({"layer_shapes": "x" * 2**21}), "expected at most 1048576"),
    ],
)
def test_what_is_refused(no_pickle, tmp_path, whole, name, data, message):
    path = changed(whole, tmp_path / "Sim.zip", name, data)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: {re.escape(name)}.*{message}"):
        import_simulation(path)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("layer_shapes", ["100000", "1"]),
        ("layer_shapes", ["4"] * 10**5),
        ("lateral_radius", "1e300"),
        ("fan_in_square_size", "1000000"),
        ("hidden_block_size", "100000"),
        ("input_block_size", "100000"),
        ("input_channels", "1" * 300),
    ],
)
def test_specs_of_a_giant_are_refused_before_anything_is_made_of_them(tmp_path, whole, option, value):
    specs = trained(frames=0)[0].config | {option: value}
    path = changed(whole, tmp_path / "Sim.zip", "pvm/specs.pkl", pickle.dumps(specs))
    with pytest.raises(ValueError, match=r"pvm/specs.pkl: .* found \d+, expected a whole number from 1 to \d+"):
        read(path)


@pytest.mark.parametrize("value", [{}, (1,), b"1", 2**60, [[1]], np.float32(1).dtype])
def test_specs_are_words_and_numbers(tmp_path, whole, value):
    specs = trained(frames=0)[0].config | {"momentum": value}
    path = changed(whole, tmp_path / "Sim.zip", "pvm/specs.pkl", pickle.dumps(specs))
    with pytest.raises(ValueError, match=r"pvm/specs.pkl: momentum: found a \w+, expected words and numbers"):
        read(path)


def test_another_graph_than_the_rule_of_the_specs_makes_is_refused(tmp_path, whole):
    specs = trained(frames=0)[0].config | {"fan_in_square_size": "1", "hidden_block_size": "3"}
    path = changed(whole, tmp_path / "Sim.zip", "pvm/specs.pkl", pickle.dumps(specs))
    with pytest.raises(ValueError, match=r"as the specs ask for|which the specs ask for"):
        read(path)
    graph = [dict(unit) for unit in units(trained(frames=0)[0])["graph"]]
    graph[20]["context_sources"] = graph[20]["context_sources"][::-1]
    path = changed(whole, tmp_path / "graph.zip", "pvm/graph.pkl", pickle.dumps(graph))
    with pytest.raises(ValueError, match="found other context_sources of unit 20 than the specs ask for"):
        read(path)


def test_weights_that_a_zip_makes_much_smaller_are_no_weights(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(checkpoint, "MOST_SQUEEZED", 0.01)
    with pytest.raises(ValueError, match=r"pvm/weight_memory_main.npy: numbers: found \d+, expected a whole number"):
        read(whole)


def test_a_cut_zip_and_what_is_no_zip(tmp_path, whole):
    data = whole.read_bytes()
    for length in (0, 10, len(data) // 2, len(data) - 30):
        path = tmp_path / "cut.zip"
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"cut.zip: found no whole zip \(.*expected Sim_"):
            read(path)
    with pytest.raises(FileNotFoundError, match=r"none.zip"):
        read(tmp_path / "none.zip")


def test_a_damaged_member_and_one_that_lies_of_its_size(tmp_path, whole):
    data = bytearray(whole.read_bytes())
    with zipfile.ZipFile(whole) as file:
        info = file.getinfo("pvm/weight_memory_main.npy")
    path = tmp_path / "Sim.zip"
    middle = info.header_offset + info.compress_size // 2
    path.write_bytes(data[:middle] + bytes(64) + data[middle + 64 :])
    with pytest.raises(ValueError, match=r"pvm/weight_memory_main.npy: found it damaged \(.*\), expected a whole file"):
        read(path)
    at = data.rindex(b"pvm/specs.pkl") - 46 + 24  # the size it has once unpacked, in the directory
    data[at : at + 4] = struct.pack("<I", 10)
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"pvm/specs.pkl: found"):
        read(path)


def test_an_unknown_compression_and_a_locked_member_are_refused(tmp_path, whole):
    path = tmp_path / "Sim.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("pvm/step.pkl", pickle.dumps(7))
    with pytest.raises(ValueError, match=r"pvm/step.pkl: .*expected deflated"):
        read(path)
    data = bytearray(whole.read_bytes())
    data[data.rindex(b"pvm/step.pkl") - 46 + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"pvm/step.pkl: .*expected deflated"):
        read(path)


# Pickles as data

PLAIN = [
    None,
    True,
    False,
    0,
    255,
    65535,
    -1,
    2**31 - 1,
    -(2**31),
    2**40,
    1.5,
    "",
    "ä",
    "x" * 300,
    (),
    (1,),
    (1, 2),
    (1, 2, 3),
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back(no_pickle, protocol):
    value = [*PLAIN, (1, 2, 3, 4), [], [1], {}, {"a": [1, {"b": (None,)}], "c": 2}, list(range(5000)), PLAIN[7:]]
    value += [value[-1], b"bytes" * 100]
    assert unpickled("member", pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
def test_arrays_dtypes_and_numbers_of_numpy_come_back(no_pickle, protocol, dtype):
    array = np.array([1, 0, 1]).astype(dtype)
    found = unpickled("member", pickle.dumps([array, array, array.dtype, array[0]], protocol))
    for one in found[:2]:
        assert one.dtype == dtype and one.tobytes() == array.tobytes()
    assert found[2] == array.dtype and found[3] == array[0].item() and type(found[3]) in (float, int, bool)


@pytest.mark.parametrize(
    "evil",
    [
        Call(os.system, "exit 3"),
        Call(eval, "1 + 1"),
        Call(exec, "import os"),
        Call(getattr, 1, "real"),
        Call(np.load, "file"),
        Call(bytearray, 10**9),
        np.array([Call(os.system, "exit 3")], object),
        {"a": [1, (Call(eval, "1"),)]},
        1j,
        {1, 2},
        frozenset([1]),
        np.ones(2, ">f4"),
        np.ones((2, 2)),
        np.array(["a"]),
        np.zeros(2, [("a", "f4")]),
        np.datetime64("2020"),
        re.compile("a"),
        os.system,
        {(1, 2): 3},
        2**5000,
    ],
)
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_anything_else_is_refused_with_its_opcode(no_pickle, protocol, evil):
    with pytest.raises(ValueError, match=r"folder/member: refused this pickle: opcode [A-Z]+[A-Z0-9_]* at byte \d+"):
        unpickled("folder/member", pickle.dumps(evil, protocol))


LONG = struct.pack("<Q", 2**62)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "damaged pickle: pickle exhausted before seeing STOP"),
        (b"\x80\x04K\x01", "damaged pickle after opcode BININT1: pickle exhausted"),
        (b"\xff.", "damaged pickle: at position 0, opcode b'\\\\xff' unknown"),
        (b"\x80\x04\x8e" + LONG, "damaged pickle after opcode PROTO: expected 4611686018427387904 bytes"),
        (b"\x80\x04\x96" + LONG, "damaged pickle after opcode PROTO: expected 4611686018427387904 bytes"),
        (b"\x80\x04B\xff\xff\xff\xffx.", "damaged pickle after opcode PROTO: expected 4294967295 bytes"),
        (b"X\xff\xff\xff\x7fx.", "damaged pickle: expected 2147483647 bytes"),
        (b"X\x01\x00\x00\x00\xff.", "damaged pickle: .*utf-8"),
        (b"\x80\x02cbuiltins\neval\n(X\x01\x00\x00\x001tR.", "opcode GLOBAL at byte 2: it names 'builtins.eval'"),
        (b"(ios\nsystem\n.", "opcode INST at byte 1, which is none of plain data"),
        (b"(cos\nsystem\nX\x01\x00\x00\x001o.", "opcode GLOBAL at byte 1: it names 'os.system'"),
        (b"\x82\x01.", "opcode EXT1 at byte 0, which is none"),
        (b"P1\n.", "opcode PERSID at byte 0, which is none"),
        (b"N\x81.", "opcode NEWOBJ at byte 1, which is none"),
        (b"N2.", "opcode DUP"),
        (b"\x97.", "opcode NEXT_BUFFER"),
        (b"\x8b\x04\x00\x00\x00\x01\x02\x03\x04.", "opcode LONG4 at byte 0, which is none"),
        (b".", "nothing on its stack"),
        (b"K\x01K\x02.", "opcode STOP with 1 values and 0 bytes left over"),
        (b"K\x01.K", "opcode STOP with 0 values and 1 bytes left over"),
        (b"(.", "opcode STOP: nothing|nothing on its stack"),
        (b"K\x01(K\x02.", "opcode STOP with 0 values|left over"),
        (b"K\x01K\x02a.", "opcode APPEND at byte 4: no list on its stack"),
        (b"K\x01(e.", "opcode APPENDS at byte 3: no list"),
        (b"](K\x01u.", "opcode SETITEMS at byte 4: keys of a dict|no dict"),
        (b"t.", "opcode TUPLE at byte 0: no mark"),
        (b"K\x01\x87.", "opcode TUPLE3 at byte 2: nothing on its stack"),
        (b"h\x07.", "opcode BINGET at byte 0: nothing remembered as 7"),
        (b"q\x07.", "opcode BINPUT at byte 0: nothing"),
        (b"}]K\x01s.", "opcode SETITEM at byte 4: keys of a dict"),
        (b"K\x01K\x02\x93.", "opcode STACK_GLOBAL at byte 4: it names 'no words'"),
        (b"K\x01)R.", "opcode REDUCE at byte 3: it calls what cannot be called"),
        (b"cnumpy\nndarray\n)R.", "it calls what cannot be called"),
        (b"cnumpy\ndtype\n]R.", "it calls what cannot be called"),
        (b"cnumpy\ndtype\n)R.", "0 arguments for dtype, expected 3"),
        (b"cnumpy\ndtype\nX\x01\x00\x00\x00O\x89\x88\x87R.", "a dtype other than f4"),
        (b"cnumpy\ndtype\nX\x02\x00\x00\x00f4\x89\x88\x87RNb.", "opcode BUILD at byte .*: no description"),
        (b"K\x01)b.", "it describes what is no array"),
        (b"cnumpy.core.multiarray\n_reconstruct\nNK\x01K\x02\x87R.", "an array that is no ndarray"),
        (b"c_codecs\nencode\nNN\x86R.", "an encoding other than latin1"),
    ],
)
def test_a_pickle_that_is_wrong_by_itself(no_pickle, data, message):
    with pytest.raises(ValueError, match=f"^member: .*(?:{message})"):
        unpickled("member", data)


def test_an_array_must_be_as_large_as_it_says():
    data = pickle.dumps(np.ones(3, np.float32), 3)
    huge = data.replace(b"K\x03\x85", b"J\xff\xff\xff\x7f\x85")
    assert huge != data
    with pytest.raises(ValueError, match=r"opcode BUILD at byte .*: an array of 12 bytes, which do not fit its shape"):
        unpickled("member", huge)


def test_every_cut_of_a_pickle_is_refused():
    data = pickle.dumps([{"a": np.arange(3), "b": (1, 2.5)}, np.float32(1)])
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"^member: "):
            unpickled("member", data[:length])


def test_a_list_that_holds_itself_is_refused_by_who_asked(tmp_path, whole):
    loop = [1]
    loop.append(loop)
    data = pickle.dumps({"layer_shapes": loop})
    path = changed(whole, tmp_path / "Sim.zip", "pvm/specs.pkl", data)
    with pytest.raises(ValueError, match=r"pvm/specs.pkl: layer_shapes: found a list, expected words and numbers"):
        read(path)
