"""Put the parts of a model on a GPU, one after another, and see what then crosses between it and the CPU.

The model is rows -> trunk -> tree. The trunk alone on the GPU: vectors and gradients cross. Rows and tree beside it: only ids,
targets and losses do. You see for each placement which arrays cross in a tick, and the loss of the last tick, which is the same
up to rounding wherever the parts are. Without a GPU you see why none can be used, and the model trains on the CPU.

    python examples/gpu_placement.py --device cuda:0

On the command line, `--rows-device` and `--readout-device` place rows and output layer. In a checkout the example also runs
on a simulated GPU: python -m tests.cudasim python examples/gpu_placement.py
"""

import argparse

import numpy as np

from hybrid import MLP, SGD, Corpus, Embedding, Engine, LanguageFeed, Text, TreeReadout, Vocabulary, choose

CONTEXT, WIDTH = 3, 16  # words before the one to predict, numbers of a word's vector


def made(sentences: int = 100) -> Text:
    """Sentences in which the last word follows from the others."""
    drawn = np.random.default_rng(0).integers(0, 9, (sentences, 2))
    return Text([f"{a} and {b} make {a + b}" for a, b in drawn])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0", help='the GPU: "cuda:0", "cuda:1", ...')
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()

    cpu = choose("cpu")
    placements = {"all on the CPU": (cpu, cpu, cpu)}  # trunk, rows, tree
    try:
        gpu = choose(arguments.device)
    except ValueError as reason:
        print(f"{reason}\n")
    else:
        placements["trunk on the GPU"] = (gpu, cpu, cpu)
        placements["trunk and rows on the GPU"] = (gpu, gpu, cpu)
        placements["trunk, rows and tree on the GPU"] = (gpu, gpu, gpu)

    corpus = Corpus(made(), Vocabulary.build(made()))
    feed = LanguageFeed(corpus, context=CONTEXT, batch=100, epochs=arguments.epochs)
    print(f"{'placement':<32}  {'last loss':>9}  crosses in a tick")
    for name, (trunk_on, rows_on, tree_on) in placements.items():
        engine = Engine(
            Embedding(feed.rows, WIDTH, per_example=CONTEXT, spread=0.1, backend=rows_on, optimiser=SGD(0.5)),
            MLP([WIDTH * CONTEXT, 32, WIDTH], optimiser=SGD(0.5)),
            TreeReadout(feed.counts, WIDTH, backend=tree_on, optimiser=SGD(0.1)),
            device=trunk_on.name,
        )
        tick = list(engine.run(feed))[-1]
        stages = engine.trace.summary()["stages"]
        crossing = sorted(stage for stage in stages if stage.endswith((" in", " out")))
        print(f"{name:<32}  {tick.loss:9.4f}  {', '.join(crossing) or 'nothing'}")


if __name__ == "__main__":
    main()
