"""Recordings of the two original Predictive Vision Models, made by the plain NumPy twins.

Names, shapes and types are those of recordings of the originals, so a test reads either. Where the originals leave
bytes unspecified (a slot beyond a unit's outputs), these hold what the originals were seen to leave there.
"""

import json

import numpy as np

from tests.twins.configurations import CLASSIC, CUDA
from tests.twins.pvm_classic import ClassicModel
from tests.twins.pvm_cuda import SLOTS, CudaModel, squeeze

LEARNED, DREAMED, HIDDEN = 50, 6, 10  # frames, frames, hidden values of a readout


def ragged(lists):
    """Lists of whole numbers as one array and the offsets in it."""
    flat = np.array([number for part in lists for number in part], np.int32)
    return flat, np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.int32)


def cuda_start(model):
    """All that does not change from frame to frame."""
    units, readout = model.units, model.readout
    start = {"config_json": json.dumps(model.config), "real": np.dtype(model.dtype).name}
    numbers = {
        "unit_layer": [u.layer for u in units],
        "unit_size": [model.h] * len(units),
        "unit_input_dim": model.input_dim,
        "unit_output_dim": model.output_dim,
        "unit_context_dim": model.context_dim,
        "unit_w0_ptr": model.w0_at,
        "unit_w1_ptr": model.w1_at,
        "unit_i_ptr": model.x_at[:-1],
        "unit_r_ptr": model.z_at[:-1],
        "unit_x": [u.x for u in units],
        "unit_y": [u.y for u in units],
    }
    start |= {name: np.array(values, np.int32) for name, values in numbers.items()}
    start["primary_src"], start["primary_off"] = ragged([u.primary for u in units])
    start["context_src"], start["context_off"] = ragged([u.context for u in units])
    start["xs"], start["xs_off"] = ragged([u.xs for u in units])
    start["ys"], start["ys_off"] = ragged([u.ys for u in units])
    start["weights_init"] = model.weights.astype(np.float32)
    start["readout_sizes"] = np.array(readout.sizes, np.int32)
    start["readout_w0_init"], start["readout_w1_init"] = readout.w0.astype(np.float32), readout.w1.astype(np.float32)
    start["readout_w0_ptr"], start["readout_w1_ptr"] = readout.w0_at.astype(np.int32), readout.w1_at.astype(np.int32)
    start["readout_lr_initial"] = np.float32(model.readout_rate)
    start["readout_momentum"] = np.float32(readout.momentum)
    start["readout_hidden"] = np.int32(readout.hidden)
    return start


def cuda(model, frames, labels, dreamed, w_steps=(0, 1, 2, 3, 5, 10, 20, 30, 40, 49)):
    """Learn `frames`, (T, H, W, channels), with their `labels`, (T, H, W), all in 0..1; then dream without learning.

    A dream has labels too, which are written down and not learned.
    """
    recording = cuda_start(model)
    seen = {}

    def keep(name, value, dtype):
        seen.setdefault(name, []).append(np.array(value, dtype))

    real = model.dtype
    for t in range(len(frames) + dreamed):
        learned = t < len(frames)
        image = frames[t] if learned else model.prediction()
        model.frame(image, labels[t] if learned else None, learn=learned)
        keep("t_frame_raw", image, np.float32)
        keep("t_frame_in", model.frame_in, np.float32)
        keep("t_label_raw", labels[t], np.float32)
        keep("t_label_in", squeeze(labels[t]), np.float32)
        keep("t_step", t, np.int64)
        keep("t_lr", model.rate, np.float32)
        keep("t_mom", model.momentum, np.float32)
        for name in ("input", "hidden", "output"):
            keep(f"t_{name}", getattr(model, name)[t % SLOTS], real)
        keep("t_pred_frame", model.prediction(), real)
        keep("t_heatmap", model.heatmap, np.float32)
        keep("t_readout_lr", model.readout_rate, np.float64)
        keep("t_readout_trained", model.readout_trained, bool)
        keep("t_learned", learned, bool)
        keep("t_mean_abs_error", model.mean_abs_error() if learned else np.nan, np.float64)
        if t in w_steps:
            keep("w_steps", t, np.int32)
            keep("w_after", model.weights, real)
            keep("dw_after", model.velocity, real)
            keep("readout_w0_after", model.readout.w0, real)
            keep("readout_w1_after", model.readout.w1, real)
    recording |= {name: np.stack(values) for name, values in seen.items()}
    return recording | {"launches_json": json.dumps({})}  # nothing is launched here


def classic_start(model):
    """All that does not change from frame to frame."""
    context, wiring = model.wiring.context, model.wiring
    start = {"config_json": json.dumps(model.config)}
    start["signal_src"], start["signal_off"] = ragged([sources or [-1] for sources in wiring.signals])
    start["context_src"], start["context_off"] = ragged([[source for source, _ in part] for part in context])
    start["context_is_feedback"], _ = ragged([[int(back) for _, back in part] for part in context])
    start["w_shapes"] = np.array([unit.net.shapes for unit in model.units], np.int32)
    start["r_shapes"] = np.array([unit.readout.shapes for unit in model.units], np.int32)
    start["weights_init"], start["readout_init"] = model.weights.copy(), model.readout_weights.copy()
    return start


def classic(model, frames, labels, rates, readout_rates, lateral, feedback, w_steps=(0, 1, 2, 3, 5, 10, 20, 30, 49)):
    """frames: uint8 (T, H, W, 3). labels: for each layer (T, side, side, depth) as targets. rates: (T, layers)."""
    recording, layers = classic_start(model), range(len(model.shapes))
    recording["t_frame_u8"], recording["t_lr"], recording["t_readout_lr"] = frames, rates, readout_rates
    recording["t_lateral"], recording["t_feedback"] = lateral, feedback
    seen = {}

    def keep(name, value, dtype=np.float64):
        seen.setdefault(name, []).append(np.array(value, dtype))

    for t, pixels in enumerate(frames):
        model.frame(pixels, [maps[t] for maps in labels], rates[t], readout_rates[t], lateral[t], feedback[t])
        keep("t_predicted0", model.prediction())
        keep("t_mean_abs_error", np.mean(abs(pixels / 255 - model.prediction())))
        for layer in layers:
            keep(f"t_state_{layer}", model.state(layer))
        for layer in layers:
            keep(f"t_predicted_{layer}", model.prediction(layer))
        for layer in layers:
            keep(f"t_heatmap_{layer}", model.heatmap(layer))
            keep(f"t_label_{layer}", labels[layer][t])
        if t in w_steps:
            keep("w_steps", t, np.int32)
            keep("w_after", model.weights)
            keep("readout_after", model.readout_weights)
    return recording | {name: np.stack(values) for name, values in seen.items()}


# -------------------------------------------------------------------------------------------------------- new ones


def video(rng, frames, side):
    """Noise that flows slowly enough to be predicted, and a square that wanders: (T, H, W, 3), (T, H, W) in 0..1."""
    picture, pictures, maps = rng.random((side, side, 3)), [], []
    place = rng.uniform(0, 0.75, 2)
    for _ in range(frames):
        picture = 0.8 * np.roll(picture, 1, axis=1) + 0.2 * rng.random(picture.shape)
        place = np.clip(place + rng.normal(0, 0.08, 2), 0, 0.75)
        pictures.append(picture)
        maps.append(square(place, side))
    return np.array(pictures), np.array(maps)


def square(place, side):
    """A map of `side` pixels in which a square, a quarter of it wide, is 1: pixels whose middle it covers."""
    middle = (np.arange(side) + 0.5) / side
    rows, columns = (abs(middle - at - 0.125) <= 0.125 for at in place)
    return np.outer(rows, columns).astype(float)


def record_cuda(name, seed=0, dtype=np.float64):
    """A recording of 50 frames learned and 6 dreamed. The seed's numbers are the same for either `dtype`."""
    rng = np.random.default_rng(seed)
    model = CudaModel(CUDA[name], np.float64, readout_hidden=HIDDEN)
    model.initialise(rng)
    start = [part.astype(np.float32) for part in (model.weights, model.readout.w0, model.readout.w1)]
    images, labels = video(rng, LEARNED + DREAMED, model.side * model.block)
    model = CudaModel(CUDA[name], dtype, readout_hidden=HIDDEN)
    model.weights[:], model.readout.w0[:], model.readout.w1[:] = start
    return cuda(model, images[:LEARNED].astype(np.float32), labels.astype(np.float32), DREAMED)


def record_classic(name, seed=0):
    """A recording of 50 frames in which layers (of E), readouts, laterals and feedback begin one after another."""
    rng = np.random.default_rng(seed)
    model = ClassicModel(CLASSIC[name])
    model.initialise(rng)
    images, maps = video(rng, LEARNED, model.shapes[0] * model.side)
    t = np.arange(LEARNED)
    # Two steps learn from the first frame on: ours has no queue of predictions that waits while a layer rests.
    begin = 3 if name == "E" else 0
    rates = np.stack(
        [np.where(t >= begin * layer, np.where(t >= 30, 0.02, 0.05), 0) for layer in range(len(model.shapes))], 1
    )
    sides = [n * side for n, side in zip(model.shapes, model.readout_sides, strict=True)]
    # A target is 0.4 where nothing is: of the square, a smaller picture for the layers with fewer pixels.
    labels = [0.4 + 0.6 * np.stack([shrink(image, side) for image in maps])[..., None] for side in sides]
    switch = [np.where(t >= at, on, 0.0) for at, on in ((20, 0.1), (8, 1.0), (12, 1.0))]
    return classic(model, (255 * images).round().astype(np.uint8), labels, rates, *switch)


def shrink(image, side):
    """The nearest pixels of a square image."""
    nearest = ((np.arange(side) + 0.5) * len(image) / side).astype(int)
    return image[np.ix_(nearest, nearest)]


def record(name, seed=0, dtype=np.float64):
    return record_cuda(name, seed, dtype) if name in CUDA else record_classic(name, seed)
