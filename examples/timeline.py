"""See when every stage of training ran, and what overlapping them is worth.

A language model trains on Python's own documentation. A batch is cut into parts, so that the dense stages of one part (the
trunk: forward, backward) run while the sparse stages of another do (rows and tree: gather, readout, scatter); no number changes
by that. You see the milliseconds of each stage in a tick, and how busy each queue was. ui.perfetto.dev shows the last ticks,
which are in timeline.json, a row for each queue.

    python examples/timeline.py --parts 4 --overlap yes
"""

import argparse
from pathlib import Path

from hybrid import MLP, Corpus, Embedding, Engine, LanguageFeed, Pipeline, TreeReadout, Vocabulary, text

CONTEXT = 4  # words before the one to predict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=100, help="batches to train on")
    parser.add_argument("--parts", type=int, default=4, help="parts of a batch")
    parser.add_argument("--overlap", choices=["yes", "no"], default="yes")
    parser.add_argument("--out", default="examples/out", help="the folder of timeline.json")
    arguments = parser.parse_args()

    sentences = text.documentation()
    corpus = Corpus(sentences, Vocabulary.build(sentences, min_count=2))
    feed = LanguageFeed(corpus, context=CONTEXT, batch=512, epochs=100)
    engine = Engine(
        Embedding(feed.rows, 128, per_example=CONTEXT, spread=0.1),
        MLP([128 * CONTEXT, 256, 128]),
        TreeReadout(feed.counts, 128),
        pipeline=Pipeline(micro_batches=arguments.parts, overlap=arguments.overlap == "yes"),
    )
    ticks = engine.run(feed)
    for tick in ticks:
        if tick.number + 1 == arguments.ticks:
            break
    ticks.close()  # the queues finish what is under way

    facts = engine.trace.summary()
    measured, wall = max(facts["ticks"], 1), facts["wall"]  # the first tick, which compiles, is left out
    print(
        f"{measured} steps of {feed.batch} examples in {arguments.parts} parts: {1e3 * wall / measured:.2f} ms per step\n"
    )
    print("stage       ms per step")
    for stage, seconds in sorted(facts["stages"].items(), key=lambda pair: -pair[1]):
        print(f"{stage:<10}  {1e3 * seconds / measured:9.3f}")
    print("\nqueue       busy")
    for queue, seconds in facts["queues"].items():
        print(f"{queue:<10}  {seconds / wall:4.0%}")
    print(f"\noverlap hid {facts['overlap']:.0%} of the time that it could hide")

    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    engine.trace.write_chrome(out / "timeline.json")
    print(out / "timeline.json")


if __name__ == "__main__":
    main()
