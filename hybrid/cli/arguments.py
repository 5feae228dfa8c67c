"""Argument parsing: no abbreviations, and model options as their dataclasses declare them."""

import argparse
import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import console
from ..settings import flag

QUIET = "print only results and errors, no notes and no progress bar"
LIFE = "The folder of the run can be used by one process at a time."
PATHS = {"DIR": "a folder", "NAME|FILE": "a name or a file", "VIDEO": "a video"}  # by metavar
PATHS |= dict.fromkeys(("RUN", "A", "B"), "the folder of a run") | dict.fromkeys(("FILE", "FILE.toml"), "a file")
OVERWRITE = "first delete the files of an earlier run in --out"
CHECKPOINT = "which checkpoint (default: best if the run has early stopping, else last)"


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations, which new options can make ambiguous; words: the arguments after the command."""

    words: Sequence[str] = ()

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **{"allow_abbrev": False} | settings)
        self._groups: dict[str, Any] = {}

    def add_quiet(self, default: Any = argparse.SUPPRESS) -> None:
        """Adds --quiet; it is allowed before and after the command, so the second default must not reset the first value."""
        self.add_argument("--quiet", action="store_true", default=default, help=QUIET)

    def add_overwrite(self, help: str = "replace an existing file") -> None:
        """Adds --overwrite, without which a command replaces no existing file, see hybrid/storage/files.py."""
        self.add_argument("--overwrite", action="store_true", help=help)

    def group(self, title: str) -> Any:
        """Returns the --help group of this title, created on first use."""
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title, LIFE if title == "the run" else None)
        return self._groups[title]

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Parses a value as argparse does; ArgumentError for an empty path, such as from an unset shell variable."""
        if arg_string == "" and action.metavar in PATHS:
            raise argparse.ArgumentError(action, f"found '', expected {PATHS[str(action.metavar)]}")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        """Exits with the message alone, without argparse's usage text, which would hide it."""
        self.exit(2, f"{self.prog}: error: {console.line(message)}; {self.prog} --help lists what it takes\n")

    def flags(self) -> list[str]:
        """Returns all flags of the parser."""
        return [name for action in self._actions for name in action.option_strings]

    def add_options(
        self,
        fields: Iterable[dataclasses.Field[Any]],
        defaults: Mapping[str, str],
        title: str | None = None,
        hidden: Container[str] = (),
    ) -> None:
        """Adds options declared by dataclasses, under the groups they name.

        Options not given are None, or False for a flag without a value, to distinguish them from given ones.

        defaults  by name, for `--help`, unless the option's help states one; "" or missing: not shown
        title     one group for all
        hidden    names of options that --help omits
        """
        for field in fields:
            facts = dict(field.metadata)
            shown = "" if "(default:" in facts["help"] else defaults.get(field.name)
            default = f" (default: {shown})" if shown else ""
            argument = dict(facts["argument"])
            if field.default is False:
                argument["action"] = "store_true"
            elif facts["registry"]:
                argument |= {"choices": facts["registry"].having("Options"), "metavar": "NAME"}
                facts["help"] += f": {', '.join(argument['choices'])}"
            self.group(title or facts["group"]).add_argument(
                flag(field.name),
                default=False if field.default is False else None,
                help=argparse.SUPPRESS if field.name in hidden else facts["help"] + default,
                **argument,
            )


def kind_of(folder: str) -> str | None:
    """Returns the model name of the run in a folder; None if there is no readable run."""
    from ..train import store

    try:
        kind: str = store.options_of(Path(folder))["kind"]
    except (ValueError, OSError):
        return None
    return kind
