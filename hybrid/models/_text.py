"""Common parts of text models: the choice of the text, its tokenisation and its vocabulary."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..feeds.stream import Lines, StoredCorpus, kept_in, stored
from ..feeds.text import Text, read
from ..feeds.vocabulary import Vocabulary
from ..settings import option
from ..train import store
from ..train.options import DATA
from ..train.runs import Trained
from . import _engine

(NAMES,) = FILES = store.FILES["words"]


@dataclasses.dataclass(frozen=True)
class TextOptions:
    """Options of every model that learns from a text."""

    text: str | None = option(
        None,
        "UTF-8 text with a sentence or paragraph per line, or a table: .parquet, .csv, .tsv, .jsonl",
        needed=True,
        **DATA,
    )
    columns: str | None = option(None, "column of texts in a table (default: text)", group="data", metavar="NAME")
    stream: str | None = option(
        None,
        "for a text larger than memory: folder of its token ids, reused until the text changes",
        group="data",
        type=os.path.abspath,
        metavar="DIR",
    )
    case: str = option(
        "lower", "convert words to lower case, or keep their case", group="data", choices=("lower", "keep")
    )


class TextJob(_engine.EngineJob):
    """The training of a model of a text, which keeps its vocabulary."""

    vocabulary: Vocabulary

    def keep(self, folder: Path) -> None:
        """Writes the vocabulary."""
        self.vocabulary.save(folder / NAMES)


def vectors(run: Trained) -> tuple[list[str], np.ndarray]:
    """Returns the words and their input rows."""
    names = Vocabulary.load(run.folder / NAMES).words
    return names, run.load().embedding.vectors()[: len(names)]


def outputs(run: Trained) -> tuple[list[str], np.ndarray]:
    """Returns the words and the vectors that rank them by products with hidden vectors."""
    return _engine.outputs(run, Vocabulary.load(run.folder / NAMES).words)


def read_text(path: str, options: Mapping[str, Any]) -> Text:
    """Reads a file, tokenised by the options."""
    cut, column = how_cut(options), options["columns"]
    if path != options["text"] and not Lines(path).table:
        column = None  # --columns applies to the training table, not to a plain text next to it
    every = Lines(path, column=column, every=cut["eos"])
    return Text(list(every), source=path, **cut) if every.table else read(path, **cut)


def stored_text(options: Mapping[str, Any], *, unknown: bool) -> StoredCorpus:
    """Returns the --text, with its ids in files of --stream; see `stored`.

    Raises ValueError if a resumed, possibly untrusted run names a folder with other content.
    """
    run, folder = options.get("resume"), options["stream"]
    if run and not kept_in(folder):
        raise ValueError(
            f"--stream: {folder}, which {run} names, does not hold the ids of a text; make it an empty folder, and they are"
            " made again"
        )
    lines = Lines(options["text"], column=options["columns"])
    return stored(lines, folder, unknown=unknown, min_count=options["min_count"], **how_cut(options))


def how_cut(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the tokenisation options, as arguments of `Text`."""
    return {"tokens": options["tokens"], "lower": options["case"] != "keep", "eos": options.get("eos", False)}


def vocabulary_of(text: Text, options: Mapping[str, Any], *, unknown: bool) -> Vocabulary:
    """Returns the vocabulary of a text, filtered and ordered by the options."""
    return Vocabulary.build(text, unknown=unknown, source=text.source, min_count=options["min_count"])
