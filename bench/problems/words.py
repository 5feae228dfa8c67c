"""Word vectors of WikiText-2: skip-gram and CBOW, ours under each readout, and gensim's; WordSim-353 chooses settings."""

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.contender import Contender, Figures, Problem, Run
from bench.draws import Log, sparse
from bench.peers import peer
from bench.problems import there
from bench.training import Peak, contender
from hybrid.feeds.text import read
from hybrid.judge import similarity
from hybrid.models import words
from hybrid.train.job import Watched
from hybrid.train.options import choose

MODELS = ("skipgram", "cbow")
READOUTS: dict[str, dict[str, Any]] = {
    "tree huffman": {"readout": "tree", "tree": "huffman"},
    "5 negatives": {"readout": "sampled", "negatives": 5},
}
GENSIM = ("tree huffman", "5 negatives")
RATES = Log(0.01, 0.1)
AS_GENSIM = {"ties": "text", "spread": 0.01}  # first vectors, and which words share nodes of a Huffman tree


def make(arguments: Any) -> Problem | None:
    """Five epochs and five seeds: with this little text a seed alone moves the figures by .02."""
    text, asked = there("wikitext-2"), there("similarity")
    if text is None or asked is None:
        return None
    options = {"text": str(text / ("valid.txt" if arguments.quick else "train.txt")), "device": "cpu"}
    options |= {"threads": arguments.threads} | AS_GENSIM
    return Problem(
        f"WikiText-2's {Path(options['text']).name}, lower case, words that occur 5 times",
        Watched("WordSim-353", lowest=False),
        _contenders(options, asked),
        epochs=(5,),
        seconds=(15, 30, 60, 120),
        seeds=(0, 1, 2, 3, 4),
    )


def _contenders(options: dict[str, Any], asked: Path) -> dict[str, Contender]:
    valid, test = (functools.partial(_of_job, asked, measure) for measure in (valid_of, test_of))
    found = {
        f"{model}, {name}": contender(
            "words", options | readout | {"model": model}, sparse("tree", RATES), words.prepare, test, valid=valid
        )
        for model in MODELS
        for name, readout in READOUTS.items()
    }
    if gensim := peer("gensim"):
        for model in MODELS:
            for name in GENSIM:
                readout = READOUTS[name]
                chosen = choose("words", **options, model=model, readout=readout["readout"])
                train = functools.partial(_gensim, chosen, asked)
                found[f"{model}, {name}, gensim {gensim.__version__}"] = Contender(
                    train, {"rate": RATES}, {"rate": 0.025}
                )
    return {name.replace(",", ""): one for name, one in found.items()}


def _of_job(asked: Path, measure: Any, job: Any, model: Any) -> Figures:
    return measure(asked, job.vocabulary.words, model.embedding.table)


def valid_of(asked: Path, names: list[str], rows: np.ndarray) -> Figures:
    """Rank correlation with the pairs of WordSim-353."""
    return {"WordSim-353": similarity.agreement(asked / "wordsim353.tsv", names, rows).rho}


def test_of(asked: Path, names: list[str], rows: np.ndarray) -> Figures:
    """Rank correlation with the pairs of SimLex-999, and the share of questions-words answered right."""
    answered = similarity.analogies(asked / "questions-words.txt", names, rows).total
    simlex = similarity.agreement(asked / "simlex999.txt", names, rows).rho
    return {"SimLex-999": simlex, "analogies": answered.accuracy if answered.asked else float("nan")}


def _gensim(chosen: dict[str, Any], asked: Path, settings: Mapping[str, Any], seed: int, epochs: float) -> Run:
    """Whole epochs alone. On several threads two trainings of one seed differ."""
    from gensim.models import Word2Vec

    tree = chosen["readout"] == "tree"
    sentences = [[word for word in line if word != "<unk>"] for line in read(chosen["text"], tokens=chosen["tokens"])]
    peak, epochs = Peak(), max(round(epochs), 1)
    model = Word2Vec(
        vector_size=chosen["width"],
        window=chosen["window"],
        min_count=chosen["min_count"],
        sample=chosen["sample"],
        sg=int(chosen["model"] == "skipgram"),
        hs=int(tree),
        negative=0 if tree else 5,
        alpha=settings["rate"],
        seed=seed + 1,  # gensim's own default is 1
        workers=chosen["threads"],
    )
    model.build_vocab(sentences)
    start = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    seconds = time.perf_counter() - start
    names, rows = model.wv.index_to_key, model.wv.vectors
    valid, test = (functools.partial(measure, asked, names, rows) for measure in (valid_of, test_of))
    size, examples = 2 * rows.size, epochs * model.corpus_total_words
    return Run(valid, test, epochs=epochs, seconds=seconds, examples=examples, parameters=size, memory=peak.bytes())
