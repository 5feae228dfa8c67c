"""Checkpoints of the CUDA original, written member by member as its code writes them, from its twin: no file is at hand."""

import pickle
import pickletools
import re
import zipfile

import numpy as np

from tests.support.hostile_pickles import EVIL
from tests.twins.configurations import CUDA
from tests.twins.pvm_cuda import CudaModel
from tests.twins.recordings import HIDDEN, video

SAVED, LATER = 7, 10  # frames before the file, and after it
DELAYS = {  # layers begin, and both switches fall, before the file and after it; readouts learn before it too
    "delay_each_layer_learning": "3",
    "delay_intermediate_learning_rate": "4",
    "delay_final_learning_rate": "12",
}


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
    """The attributes of the original's units that tell their state, and one of the thirty that do not."""
    half = twin.step % 2
    old = np.full_like(twin.velocity, 9)  # one of the two buffers is a step behind
    graph = [
        {"id": u, "grid_pos": (unit.x, unit.y), "primary_sources": unit.primary, "context_sources": unit.context}
        for u, unit in enumerate(twin.units)
    ]
    said = {
        "specs": twin.config,
        "name": "small",
        "poly": twin.config["polynomial"] == "1",
        "device": "TITAN X (Pascal)",
    }
    return said | {
        "step": twin.step,
        "graph": graph,
        "weight_memory_main": twin.weights,
        "dweight_memory_0": twin.velocity if half else old,
        "dweight_memory_1": old if half else twin.velocity,
        "buffer_index": half,
        "input_mem_activation": list(twin.input.copy()),
        "output_mem_activation": list(twin.output.copy()),
        "repre_mem_activation": list(twin.hidden.copy()),
        "learning_rate_arr": twin.rate,
        "momentum_arr": twin.momentum,
    }


def readouts(twin):
    """The same of the original's readouts; and of the collection of nets in them: all, and each layer's."""
    readout, tiles, h = twin.readout, len(twin.readout.tiles), twin.readout.hidden
    flipped = twin.trained % 2 == 1
    layers = []
    for weights, velocity, rows, columns in (
        (readout.w0, readout.v0, [h] * tiles, np.add(readout.sizes, 1)),
        (readout.w1, readout.v1, [readout.outputs] * tiles, [h + 1] * tiles),
    ):
        old = np.full_like(velocity, 9)
        layer = {"weight_mem": weights, "dweight_mem": velocity, "mweight_mem": old}
        layer |= {} if flipped else {"dweight_mem": old, "mweight_mem": velocity}
        layer |= {"shape0": np.array(rows, np.int32), "shape1": np.array(columns, np.int32)}
        layers.append(layer | {"momentum_mem": np.full(tiles, readout.momentum, np.float32)})
    return {"heatmap_block_size": readout.block}, {"flip_buf": flipped, "max_layers": 2}, layers


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
