"""Options of models, readouts and trunks: fields of frozen dataclasses, from which parsers, defaults and refusals are made."""

import dataclasses
from typing import Any


def option(default: Any, help: str, *, group: str = "model", free: bool = False, **argument: Any) -> Any:
    """A field of a dataclass of options; its name with dashes is the flag on the command line.

    default   what it is where the user does not say; False makes a flag without a value
    help      a line for `--help`, which adds the default
    group     the heading under which `--help` lists it: "data", "model", "training" or "the run"
    free      whether a run may go on with another value than the one that it was begun with: it changes no number
    argument  keywords of argparse's add_argument: type, choices, metavar, nargs, action, ...
    """
    return dataclasses.field(
        default=default, metadata={"help": help, "group": group, "free": free, "argument": argument}
    )
