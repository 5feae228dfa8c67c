"""The options of a trial, read as `hybrid train` reads them: names, values and what goes together are those of the command."""

import difflib
from collections.abc import Mapping
from typing import Any, NoReturn

from ..cli.arguments import Parser
from ..settings import flag
from ..train.options import Parts, choose
from ..train.runs import LENGTHS

OURS = {"threads": "the sweep divides them among its workers: hybrid sweep --threads N"}


class _Reader(Parser):
    """Raises instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message.partition(": ")[2] if message.startswith("argument ") else message)


class Asked:
    """The options that a model's runs take.

    length  the option that says how far a run goes, of LENGTHS
    """

    def __init__(self, kind: str):
        self._kind, self._fields = kind, Parts(kind).every()
        self._parser = _Reader(prog="hybrid sweep", add_help=False)
        self._parser.add_options(self._fields.values(), {})
        self.length = next(name for name in LENGTHS if name in self._fields)

    def name(self, said: str) -> str:
        """The option that a key of the file names, with dashes or without; ValueError where there is none."""
        name = said.replace("-", "_")
        if name in OURS:
            raise ValueError(f"not of a trial: {OURS[name]}")
        if name not in self._fields:
            near = difflib.get_close_matches(name, self._fields, 1)
            hint = f"did you mean {near[0]}?" if near else f"see hybrid train {self._kind} --help"
            raise ValueError(f"not an option of hybrid train {self._kind}; {hint}")
        return name

    def read(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as the command line understands them; ValueError for a value that it refuses."""
        return vars(self._parser.parse_args(words(options)))

    def chosen(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """All options of the run; ValueError for those that contradict each other, are not used, or lack."""
        return choose(self._kind, **self.read(options))


def words(options: Mapping[str, Any]) -> list[str]:
    """Options as a user would type them."""
    found = []
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            if each is not False:
                found.append(flag(name) if each is True else f"{flag(name)}={each}")
    return found
