"""The command line: every command, its options and their defaults. Imports nothing heavy, so --help is quick."""

import argparse
import os

from .. import __version__
from ..pvm import command as pvm
from ..train.saving import EVERY
from .arguments import Parser
from .arguments import positive as _positive
from .arguments import rate as _rate
from .arguments import whole as _whole

MODELS = ("language", "words", "factors")

# In the parser every default is None, so that what the user said can be told from what he did not.
DEFAULTS: dict[str, dict] = {
    "language": {
        "tokens": "words",
        "case": "lower",
        "eos": False,
        "context": 4,
        "width": 64,
        "hidden": 256,
        "readout_width": 128,
        "min_count": 2,
        "epochs": 4,
        "batch": 512,
        "micro_batches": 2,
        "activation": "tanh",
        "momentum": 0.9,
        "rows_device": "cpu",
        "readout_device": "cpu",
    },
    "words": {
        "tokens": "whitespace",
        "case": "lower",
        "model": "skipgram",
        "window": 5,
        "sample": 1e-3,
        "width": 100,
        "min_count": 5,
        "epochs": 5,
        "batch": None,  # by the vocabulary's size, see models/words.py
        "micro_batches": 1,
    },
    "factors": {
        "epochs": 5,
        "batch": 512,
        "micro_batches": 2,
        "activation": "tanh",
        "momentum": 0.9,
        "rows_device": "cpu",
        "readout_device": "cpu",
    },
}
COMMON: dict = {"seed": 0, "delay": 0, "readout": "tree", "save_every": EVERY}
DATA = {"language": ("text", "valid", "test"), "words": ("text",), "factors": ("ratings", "columns")}
# What `eval` takes of each kind of run, with defaults.
EVAL: dict[str, dict] = {
    "language": {"text": None},
    "words": {"similarity": None, "analogies": None},
    "factors": {"at": 10, "ratings": None, "columns": None},
    "pvm": dict.fromkeys(pvm.EVAL),
}
READOUT_DEFAULTS: dict[str, dict] = {
    "tree": {"tree": "huffman", "mode": "deterministic"},
    "full": {},
    "sampled": {"negatives": None},
}
# The best that `python -m bench tune_factors` found: the same under full and sampled softmax, others under the tree.
_FACTORS: dict = {
    "history": 5,
    "width": 64,
    "hidden": 256,
    "readout_width": 32,
    "rate": 0.093,
    "rows_rate": 0.18,
    "trunk_rate": 0.16,
}
# Steps of SGD, and how a tree's nodes learn; of factors, sizes too. A tree and a table of negatives learn example by
# example, the softmaxes from the sum over a micro-batch.
RATES: dict[tuple[str, str], dict] = {
    ("language", "tree"): {"rate": 0.02, "rows_rate": 0.2, "trunk_rate": 0.2, "split": None},
    ("language", "full"): {"rate": 0.02, "rows_rate": 0.2, "trunk_rate": 0.05},
    ("language", "sampled"): {"rate": 0.02, "rows_rate": 0.2, "trunk_rate": 0.05},
    ("words", "tree"): {"rate": 0.025, "rows_rate": 0.025, "mode": "grouped"},
    ("words", "full"): {"rate": 0.025, "rows_rate": 0.025},
    ("words", "sampled"): {"rate": 0.025, "rows_rate": 0.025},
    ("factors", "tree"): {
        "tree": "balanced",
        "history": 3,
        "width": 32,
        "hidden": 128,
        "readout_width": 64,
        "rate": 0.02,
        "rows_rate": 0.34,
        "trunk_rate": 0.024,
        "split": None,
    },
    ("factors", "full"): _FACTORS,
    ("factors", "sampled"): _FACTORS,
}


def parser() -> Parser:
    """The parser of `hybrid`."""
    top = Parser(
        prog="hybrid",
        description="Train dense nets under tree, full, sampled and nearest-neighbour readouts; compare them honestly.",
    )
    top.add_argument("--version", action="version", version=f"hybrid-engine {__version__}")
    top.add_argument("--debug", action="store_true", help="show the traceback of an error")
    top.add_quiet(False)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _demo(
        commands.add_parser(
            "demo", help="train a language model under full softmax, tree and sampled softmax, and compare"
        )
    )
    _train(commands.add_parser("train", help="train a language model, word vectors or factors"))
    _life(pvm.add(commands), "runs/pvm", "--steps N", f" (default: {EVERY})")
    _eval(commands.add_parser("eval", help="measure a trained run on other data"))
    _export(commands.add_parser("export", help="write a run's vectors: word2vec format, .npz, .tsv, .parquet"))
    doctor = commands.add_parser("doctor", help="what is installed, what is missing and the command that mends it")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    for command in commands.choices.values():
        command.add_quiet()
    return top


def _demo(demo) -> None:
    demo.add_argument("--text", metavar="FILE", help="train on this text instead of Python's own documentation")
    epochs = DEFAULTS["language"]["epochs"]
    demo.add_argument("--epochs", type=_positive, default=epochs, help=f"passes over the text (default {epochs})")
    demo.add_argument("--out", metavar="DIR", default="runs/demo", help="where results go (default runs/demo)")
    _machine(demo)


def _machine(command) -> None:
    command.add_argument(
        "--device", help='"cpu", "cuda:N" or "auto": a GPU when one can be used (default), and says which and why'
    )
    command.add_argument("--threads", type=_positive, help="CPU threads in total (default: all cores that it may use)")
    command.add_argument("--seed", type=_whole, help="seed of everything drawn")
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def _train(train) -> None:
    kinds = "language, words or factors; for pvm see hybrid train pvm --help"
    train.add_argument("kind", nargs="?", type=_model, metavar="MODEL", help=kinds)
    _life(train, "runs/MODEL", "--epochs N (pvm: --steps N)")
    train.add_argument("--steps", type=_positive, metavar="N", help=argparse.SUPPRESS)  # of a pvm, with --resume
    _data(train.add_argument_group("data"))
    _parts(train.add_argument_group("model"))
    _learning(train.add_argument_group("training"))
    _machine(train)
    train.add_defaults(_default)


def _data(data) -> None:
    data.add_argument(
        "--text",
        type=os.path.abspath,
        metavar="FILE",
        help="language, words: a UTF-8 text, one sentence or paragraph a line",
    )
    data.add_argument(
        "--valid", type=os.path.abspath, metavar="FILE", help="language: validation text (default: a tenth of --text)"
    )
    data.add_argument("--test", type=os.path.abspath, metavar="FILE", help="language: tested on this text at the end")
    data.add_argument("--tokens", choices=("words", "whitespace"), help="how text is cut into tokens")
    data.add_argument("--case", choices=("lower", "keep"), help="whether upper case becomes lower case")
    data.add_argument(
        "--eos",
        action="store_true",
        default=None,
        help="language: every line, empty ones too, ends with the token <eos>, and contexts reach over lines; with "
        "--tokens whitespace --case keep --min-count 1 this is WikiText as published",
    )
    data.add_argument("--min-count", type=_positive, help="language, words: rarer words become <unk> or are left out")
    _ratings(data)


def _parts(model) -> None:
    model.add_argument("--readout", choices=("tree", "full", "sampled"), help="the output layer")
    model.add_argument(
        "--readout-device",
        metavar="DEVICE",
        help='language, factors: where a tree or full readout computes: "cpu", the trunk\'s "cuda:N", or "auto": '
        "both, and trees cut between them, are measured",
    )
    model.add_argument(
        "--rows-device",
        metavar="DEVICE",
        help='language, factors: where the input rows are: "cpu", the trunk\'s "cuda:N", or "auto": both are measured',
    )
    model.add_argument(
        "--split",
        type=_whole,
        metavar="K",
        help="tree readout on a GPU: its first K nodes are there, as dense products, and the others on the CPU (0: none)",
    )
    model.add_argument("--tree", choices=("huffman", "balanced"), help="tree readout: its shape")
    model.add_argument(
        "--mode", choices=("deterministic", "grouped", "hogwild", "runs"), help="tree readout: how rows learn"
    )
    model.add_argument(
        "--negatives", type=_positive, help="sampled readout: classes drawn (language, factors: a batch)"
    )
    model.add_argument("--model", choices=("skipgram", "cbow"), help="words: which word2vec model")
    model.add_argument("--context", type=_positive, help="language: words before the target")
    model.add_argument("--window", type=_positive, help="words: most words on each side")
    model.add_argument("--sample", type=_rate, help="words: subsampling of frequent words (0: none)")
    model.add_argument("--history", type=_positive, help="factors: most items of a user's history")
    model.add_argument("--width", type=_positive, help="width of the input rows")
    model.add_argument("--hidden", type=_positive, help="language, factors: hidden width of the trunk")
    model.add_argument("--readout-width", type=_positive, help="language, factors: width of the hidden vector")
    model.add_argument("--activation", choices=("logistic", "rational", "tanh", "relu"), help="of the trunk")


def _learning(training) -> None:
    training.add_argument("--epochs", type=_positive, help="passes over the data")
    training.add_argument("--batch", type=_positive, help="examples a batch; of words, if not said, by the vocabulary")
    training.add_argument("--micro-batches", type=_positive, help="parts of a batch that overlap")
    training.add_argument("--delay", type=_whole, help="batches begun and not finished, up to 16 (0: exact)")
    training.add_argument("--pin", action="store_true", help="the threads of each queue keep to cores of their own")
    training.add_argument("--serial", action="store_true", help="one stage after another, on all threads")
    training.add_argument("--rate", type=_rate, help="learning rate of the readout")
    training.add_argument("--rows-rate", type=_rate, help="learning rate of the input rows")
    training.add_argument("--trunk-rate", type=_rate, help="language, factors: learning rate of the trunk")
    training.add_argument("--momentum", type=_rate, help="language, factors: momentum of the trunk")


def _default(name: str) -> str:
    """An option's default, or those of the models and readouts that differ in it; "" for none."""
    every = {(kind, readout): _defaults(kind, readout).get(name) for kind, readout in RATES}
    found = {key: value for key, value in every.items() if value is not None and value is not False}
    by_kind: dict[str, str] = {}
    for kind in dict.fromkeys(kind for kind, _ in found):
        of_kind = {readout: value for (other, readout), value in found.items() if other == kind}
        values = set(of_kind.values())
        shown = (f"{readout} {value}" for readout, value in of_kind.items())
        by_kind[kind] = str(*values) if len(values) == 1 else " or ".join(shown)
    if not by_kind:
        return ""
    if len(set(by_kind.values())) == 1:
        return next(iter(by_kind.values()))
    return ", ".join(f"{kind} {shown}" for kind, shown in by_kind.items())


def _defaults(kind: str, readout: str) -> dict:
    return COMMON | DEFAULTS[kind] | READOUT_DEFAULTS[readout] | RATES[kind, readout]


def _ratings(data, note: str = "") -> None:
    data.add_argument(
        "--ratings",
        type=os.path.abspath,
        metavar="FILE",
        help=f"factors: {note}MovieLens u.data or ratings.dat, a table of text, Parquet, or scipy .npz",
    )
    data.add_argument(
        "--columns",
        type=lambda text: text.split(","),
        metavar="USER,ITEM[,TIME]",
        help="factors: which columns of --ratings these are: names of its header, or numbers from 1 where it has none",
    )


def _life(train, out: str, further: str, default: str = "") -> None:
    life = train.add_argument_group("the run", "a folder, which one process at a time works on")
    life.add_argument("--out", metavar="DIR", help=f"where it goes (default {out})")
    life.add_argument("--overwrite", action="store_true", help="remove the run in --out first: what it wrote, no more")
    life.add_argument(
        "--resume",
        metavar="DIR",
        help=f"go on with the run in DIR, with its own options and to the same bytes; {further}: further than it was begun for",
    )
    life.add_argument(
        "--previous", action="store_true", help="with --resume: go on from the save before the last, if that is damaged"
    )
    life.add_argument(
        "--save-every",
        type=_rate,
        metavar="SECONDS",
        help="between saves; 0: at the beginning, after epochs, on a stop and at the end alone" + default,
    )


def _eval(command) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("--text", metavar="FILE", help="language: perplexity on this text")
    _ratings(command, "where the ratings of the run are now: ")
    command.add_argument("--similarity", metavar="FILE", action="append", help="words: WordSim- or SimLex-like pairs")
    command.add_argument("--analogies", metavar="FILE", help="words: questions-words format")
    command.add_argument("--device", help="cpu, cuda:N (default: the first GPU that can be used, else the CPU)")
    at = EVAL["factors"]["at"]
    command.add_argument("--at", type=_positive, metavar="K", help=f"factors: recall@K, nDCG@K (default {at})")
    command.add_argument("--threads", type=_positive, help="CPU threads in total (default: all cores that it may use)")
    command.add_argument("--json", action="store_true", help="print JSON")
    pvm.add_eval(command)


def _export(command) -> None:
    command.add_argument("run", metavar="RUN", help="the folder of a trained run")
    command.add_argument("file", metavar="FILE", help="the file to write")
    command.add_argument(
        "--format",
        choices=("text", "binary", "npz", "tsv", "parquet"),
        help="text and binary are word2vec's (default: by the end of FILE: .npz, .tsv, .parquet, else text)",
    )
    command.add_argument("--binary", action="store_true", help="the same as --format binary")
    command.add_argument("--escape", action="store_true", help="text, binary: write _ for white space in names")


def _model(text: str) -> str:
    if text not in (*MODELS, "pvm"):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected one of {', '.join(MODELS)}, pvm")
    return text


def resolve(options: dict) -> dict:
    """The options of a `train` command with the defaults of its model filled in.

    Raises ValueError for options that contradict each other or that this model does not take.
    """
    kind = options["kind"]
    if kind is None:
        raise ValueError(f"train: which model? expected one of {', '.join(MODELS)}, pvm, or --resume DIR")
    if kind == "pvm":
        return pvm.resolve(options)
    readout = options.get("readout") or COMMON["readout"]
    defaults = _defaults(kind, readout)
    _refuse(options, kind, readout, set(defaults))
    _check_split(options)
    chosen = options | {name: value for name, value in defaults.items() if options.get(name) is None}
    batch, parts = chosen["batch"], chosen["micro_batches"]
    if batch and parts > batch:
        if options.get("micro_batches"):
            raise ValueError(
                f"--micro-batches: found {parts}, expected 1 to {batch}, the examples of a batch (--batch)"
            )
        chosen["micro_batches"] = batch
    return chosen


def for_eval(options: dict, kind: str) -> dict:
    """The options of `eval` of a run of this kind, with their defaults; ValueError for those that it does not use."""
    every = {name for names in EVAL.values() for name in names}
    for name in sorted(every - set(EVAL[kind])):
        if options.get(name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}: not used by `eval` of a {kind} run; leave it out")
    taken = EVAL[kind].items()
    return options | {name: value for name, value in taken if options.get(name) is None}


def _refuse(options: dict, kind: str, readout: str, taken: set[str]) -> None:
    source = DATA[kind][0]
    if not options.get(source):
        raise ValueError(f"--{source}: needed by `train {kind}`, found none")
    tables: tuple = (*DATA.values(), *DEFAULTS.values(), *READOUT_DEFAULTS.values(), *RATES.values())
    every: set[str] = {"steps"}.union(*tables)
    for name in sorted(every - taken - set(DATA[kind])):
        if options.get(name) is not None:
            flag = name.replace("_", "-")
            raise ValueError(f"--{flag}: not used by `train {kind} --readout {readout}`; leave it out")
    if options.get("serial") and options.get("delay"):
        raise ValueError("--serial and --delay contradict each other: a serial run delays nothing; leave one out")


def _check_split(options: dict) -> None:
    place = options.get("readout_device") or "cpu"
    if not options.get("split") or place not in ("cpu", "auto"):
        return
    if place == "auto":
        raise ValueError("--split and --readout-device auto contradict each other: auto measures splits; leave one out")
    raise ValueError(
        "--split: cuts a tree between the CPU and a GPU, found --readout-device cpu; expected the trunk's, --readout-device "
        "cuda:N"
    )
