"""Put a tree over classes on hidden vectors of your own, beside a full softmax on the same vectors.

The vectors come from NumPy: each class has a centre, and an example is its class's centre with noise. The readouts learn
from the same batches. You see, for each, how many rows of weights an example costs, the loss of unseen examples in nats, and
how often the right class is the first and among the first ten. A tree costs a hundredth here, and learns less from each
example: that is the trade it offers. These vectors are hard for it: a Huffman tree knows how frequent classes are, not
which are alike. `step` also writes the gradient of the hidden vectors, for whatever made them.

    python examples/tree_on_vectors.py --classes 2000
"""

import argparse

import numpy as np

from hybrid import SGD, FullReadout, TreeReadout

BATCH = 256


def examples(centres, share, rng, n):
    """n hidden vectors and their classes, frequent classes more often."""
    target = rng.choice(len(centres), n, p=share).astype(np.int32)
    return centres[target] + rng.normal(0, 1, (n, centres.shape[1])).astype(np.float32), target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(arguments.classes, arguments.width)).astype(np.float32)
    counts = 1e6 / np.arange(1, arguments.classes + 1)  # Zipf's law, as of words or of products
    share = counts / counts.sum()
    readouts = {
        "Huffman tree": TreeReadout(counts, arguments.width, batch=BATCH, optimiser=SGD(0.03)),
        "full softmax": FullReadout(counts, arguments.width, batch=BATCH, optimiser=SGD(0.03)),
    }
    every = np.arange(arguments.classes, dtype=np.int32)
    nowhere = np.zeros((arguments.classes, arguments.width), np.float32)
    # Every node of a new tree says 1/2, so the log-probability of a class tells how long its path is.
    paths = -readouts["Huffman tree"].log_prob(nowhere, every) / np.log(2)
    rows = {"Huffman tree": (paths * share).sum(), "full softmax": arguments.classes}

    grad = np.empty((BATCH, arguments.width), np.float32)
    for _ in range(arguments.steps):
        hidden, target = examples(centres, share, rng, BATCH)
        for readout in readouts.values():
            readout.step(grad, hidden, target)  # learns, and writes d loss / d hidden

    hidden, target = examples(centres, share, rng, 4096)
    print(f"{arguments.classes:,} classes, {arguments.steps * BATCH:,} examples, {len(target):,} unseen\n")
    print("readout       rows an example    loss   first   among ten")
    for name, readout in readouts.items():
        loss = -readout.log_prob(hidden, target).mean()
        ids, _ = readout.best(hidden, k=10)
        right = ids == target[:, None]
        print(f"{name}  {rows[name]:>15.1f}  {loss:>6.2f}  {right[:, 0].mean():>6.1%}  {right.any(1).mean():>10.1%}")


if __name__ == "__main__":
    main()
