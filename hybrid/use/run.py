"""A trained run, opened to be used."""

from pathlib import Path
from typing import Any

from ..models import MODELS
from ..train import runs
from .vectors import Vectors


def open_run(
    folder: str | Path, *, checkpoint: str | None = None, device: str | None = None, threads: int | None = None
) -> Any:
    """What a trained run can be used for, by its model: a `Recommender` (factors), a `LanguageModel` (language), an object
    with `.vectors` and `.similar` (words) or with `.predict` (labels); of a model that offers nothing of that kind, the model
    itself (pvm: a PVM).

    checkpoint  "last" or "best"; None: the best where the run could stop early, else the last
    device      "cpu", "cuda:N" or "auto", see `Engine`; None: a GPU when one can be used
    threads     CPU threads in total; None: all cores that the process may use

    Raises ValueError for a folder that holds no trained run, and for a checkpoint that is damaged.
    """
    run = runs.trained(folder, checkpoint, device=device, threads=threads)
    use = getattr(MODELS.load(run.options["kind"]), "Use", None)
    return use(run) if use else run.load()


def vectors_of(folder: str | Path, *, checkpoint: str | None = None, device: str = "cpu") -> Vectors:
    """The vectors of a trained run, those that `hybrid export` writes; ValueError for a run whose model has none."""
    run = runs.trained(folder, checkpoint, device=device)
    model = MODELS.load(run.options["kind"])
    if not hasattr(model, "vectors"):
        raise ValueError(f"{folder}: a run of {run.options['kind']} has no vectors of words or items")
    return Vectors(*model.vectors(run), what="name")


def able(folder: str | Path, method: str, does: str) -> None:
    """ValueError for a run whose model has no `Use` with this method, naming the models that have.

    does  what the method does, as in "a run of pvm cannot recommend"
    """
    kind = runs.trained(folder).options["kind"]
    if not _offers(kind, method):
        others = " or ".join(name for name in MODELS.names() if _offers(name, method))
        raise ValueError(f"{folder}: a run of {kind} cannot {does}; expected a run of {others}")


def _offers(kind: str, method: str) -> bool:
    return hasattr(getattr(MODELS.load(kind), "Use", None), method)
