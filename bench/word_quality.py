"""Quality of word vectors over seeds: rated pairs and analogies, ours beside gensim; measures no time."""

import os
import statistics
from pathlib import Path

import numpy as np

from bench.measure import append, commit, environment
from bench.peers import peer
from bench.problems.words import AS_GENSIM
from hybrid.feeds.text import read
from hybrid.judge import similarity
from hybrid.models import words
from hybrid.train.options import choose

COUNTS = True  # and times nothing: it runs beside other work
EPOCHS, SEEDS = 5, (0, 1, 2, 3, 4)
SETTINGS = [(model, readout) for readout in ("tree", "sampled") for model in ("skipgram", "cbow")]
FILES = {"WordSim-353": "wordsim353.tsv", "SimLex-999": "simlex999.txt", "analogies": "questions-words.txt"}


def run(arguments) -> int:
    """Train each setting with each seed and ask the vectors; --quick: one seed, one epoch."""
    data = Path(os.environ.get("HYBRID_DATA", "data"))
    text, asked = data / "wikitext-2" / "train.txt", {name: data / "similarity" / file for name, file in FILES.items()}
    for path in (text, *asked.values()):
        if not path.exists():
            print(f"{path} is missing: HYBRID_DATA names the folder that holds wikitext-2/ and similarity/")
            return 1
    epochs, seeds = (1, SEEDS[:1]) if arguments.quick else (EPOCHS, SEEDS)
    for model, readout in SETTINGS:
        chosen = [_options(text, model, readout, epochs, seed, arguments.threads) for seed in seeds]
        rivals = {"ours": _ours} | _gensim()
        records = [_record(who, learn, chosen, asked) for who, learn in rivals.items()]
        append(arguments.json, records)
    return 0


def _options(text: Path, model: str, readout: str, epochs: int, seed: int, threads: int) -> dict:
    """What `hybrid train words` takes: our defaults, and what gensim does where these differ."""
    settings = {"readout": readout, "epochs": epochs, "seed": seed, "threads": threads} | AS_GENSIM
    return choose("words", text=str(text), model=model, **settings)


def _ours(chosen: dict) -> tuple[list[str], np.ndarray]:
    job = words.prepare(chosen)
    engine = job.make()
    for _ in engine.run(job.feed):
        pass
    return job.vocabulary.words, engine.embedding.table


def _gensim() -> dict:
    gensim = peer("gensim")
    if not gensim:
        return {}
    from gensim.models import Word2Vec

    def learn(chosen: dict) -> tuple[list[str], np.ndarray]:
        text = read(chosen["text"], tokens=chosen["tokens"])
        model = Word2Vec(
            [[word for word in line if word != "<unk>"] for line in text],
            vector_size=chosen["width"],
            window=chosen["window"],
            min_count=chosen["min_count"],
            sample=chosen["sample"],
            sg=int(chosen["model"] == "skipgram"),
            hs=int(chosen["readout"] == "tree"),
            negative=0 if chosen["readout"] == "tree" else 5,
            alpha=chosen["rate"],
            epochs=chosen["epochs"],
            seed=chosen["seed"] + 1,  # gensim's own default is 1
            workers=1,  # with more it differs from run to run
        )
        return model.wv.index_to_key, model.wv.vectors

    return {f"gensim {gensim.__version__}": learn}


def _record(who: str, learn, chosen: list[dict], asked: dict[str, Path]) -> dict:
    """One record of all seeds; `quality` has a figure a seed."""
    quality: dict[str, list[float]] = {name: [] for name in asked}
    for options_of_seed in chosen:
        names, rows = learn(options_of_seed)
        for name, path in asked.items():
            if name == "analogies":
                figure = similarity.analogies(path, names, rows).total.accuracy
            else:
                figure = similarity.agreement(path, names, rows).rho
            quality[name].append(round(float(figure), 4))
    first = chosen[0]
    params = {name: first[name] for name in ("model", "readout", "width", "window", "epochs")}
    shown = {name: round(statistics.mean(values), 3) for name, values in quality.items()}
    print(f"{who} {params}: {shown} over {len(chosen)} seeds", flush=True)
    return {
        "bench": "word_quality",
        "work": "words.quality",
        "who": who,
        "params": params,
        "seeds": [one["seed"] for one in chosen],
        "quality": quality,
        "words": len(names),
        "data": "wikitext-2/train.txt",
        "threads": 1 if who != "ours" else first["threads"],
        "device": "cpu",
        "commit": commit(),
        "env": environment(),
    }
