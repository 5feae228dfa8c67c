"""How a command line is read: whole words only, and options of models as their dataclasses declare them."""

import argparse
import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import console
from ..settings import flag

QUIET = "neither notes nor a progress bar on stderr; errors stay"
LIFE = "a folder, which one process at a time works on"
DEVICE = '"cpu", "cuda:N" or "auto": a GPU when one can be used (default), and says which and why'
THREADS = "CPU threads in total (default: all cores that it may use)"
PATHS = {  # by metavar
    "DIR": "a folder",
    "RUN": "the folder of a run",
    "A": "the folder of a run",
    "B": "the folder of a run",
    "FILE": "a file",
    "FILE.toml": "a file",
    "NAME|FILE": "a name or a file",
    "VIDEO": "a video",
}
OVERWRITE = "remove the run in --out first: what it wrote, no more"
CHECKPOINT = "which checkpoint (default: the best where the run could stop early, else the last)"


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations: one that is clear today is another option's tomorrow.

    words  what follows the command, on which its options may depend
    """

    words: Sequence[str] = ()

    def __init__(self, *arguments: Any, **settings: Any):
        super().__init__(*arguments, **{"allow_abbrev": False} | settings)
        self._groups: dict[str, Any] = {}

    def add_quiet(self, default: Any = argparse.SUPPRESS) -> None:
        """Offer --quiet; before the command and after it, so what is said last must not undo what was said first."""
        self.add_argument("--quiet", action="store_true", default=default, help=QUIET)

    def add_overwrite(self, help: str = "replace a file that is there already") -> None:
        """Offer --overwrite, without which a command writes no file that is there already, see hybrid/storage/files.py."""
        self.add_argument("--overwrite", action="store_true", help=help)

    def group(self, title: str) -> Any:
        """The heading in --help of this title, made when it is asked for first."""
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title, LIFE if title == "the run" else None)
        return self._groups[title]

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """As argparse's own; an ArgumentError for a path that is empty, as where a variable of a shell is not set."""
        if arg_string == "" and action.metavar in PATHS:
            raise argparse.ArgumentError(action, f"found '', expected {PATHS[str(action.metavar)]}")
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        """End the process with the message alone: all options, which argparse would write above it, would hide it."""
        self.exit(2, f"{self.prog}: error: {console.line(message)}; {self.prog} --help lists what it takes\n")

    def flags(self) -> list[str]:
        """All flags that it takes."""
        return [name for action in self._actions for name in action.option_strings]

    def add_options(
        self,
        fields: Iterable[dataclasses.Field[Any]],
        defaults: Mapping[str, str],
        title: str | None = None,
        hidden: Container[str] = (),
    ) -> None:
        """Offer the options that dataclasses declare, under the headings that they name.

        What the user did not say is None, or False for a flag without a value, so that it can be told from what he said.

        defaults  by name, as `--help` says them, unless the help of the option itself does; "" or none: not at all
        title     one heading for all
        hidden    names of options that --help does not show
        """
        for field in fields:
            facts = dict(field.metadata)
            shown = "" if "(default:" in facts["help"] else defaults.get(field.name)
            said = f" (default: {shown})" if shown else ""
            argument = dict(facts["argument"])
            if field.default is False:
                argument["action"] = "store_true"
            elif facts["registry"]:
                argument |= {"choices": facts["registry"].having("Options"), "metavar": "NAME"}
                facts["help"] += f": {', '.join(argument['choices'])}"
            self.group(title or facts["group"]).add_argument(
                flag(field.name),
                default=False if field.default is False else None,
                help=argparse.SUPPRESS if field.name in hidden else facts["help"] + said,
                **argument,
            )


def kind_of(folder: str) -> str | None:
    """The name of the model of the run in a folder; None where it holds no run that can be read."""
    from ..train import store

    return store.kind_of(Path(folder))
