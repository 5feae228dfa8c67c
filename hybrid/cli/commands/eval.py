"""The command `hybrid eval`: metrics of a trained run on other data."""

import argparse
import json
from typing import Any

from ...settings import MODELS, fields
from ..arguments import Parser, kind_of
from . import _use


def add(command: Parser) -> None:
    """Adds the options of the run's model, or of all models if it is unknown."""
    _use.add_run(command)
    folder = next((word for word in (*command.words[:1], *command.words[-1:]) if not word.startswith("-")), None)
    kind = kind_of(folder) if folder else None
    taken: dict[str, Any] = {}
    for name in [kind] if kind else MODELS.names():
        own = {option: field for option, field in fields(MODELS.load(name).Evaluation).items() if option not in taken}
        shown = {option: str(field.default) for option, field in own.items() if field.default not in (None, False)}
        command.add_options(own.values(), shown, title=f"of a run of {name}")
        taken |= own


def run(given: argparse.Namespace) -> int:
    """Evaluates the run and prints the metrics."""
    from ...train import runs

    figures = runs.evaluate(given.run, vars(given))
    print(json.dumps(figures, indent=1) if given.json else runs.text(figures))
    return 0
