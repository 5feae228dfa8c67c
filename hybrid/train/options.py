"""Options of every run, and the options of one command with defaults filled in."""

import argparse
import contextlib
import dataclasses
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from ..settings import MODELS, Registry, fields, flag, given, number, option, positive, possible, whole

DEVICE = "cpu, cuda:N or auto; auto prints its choice (default: a usable GPU, else the CPU)"
THREADS = "total CPU threads (default: all available cores)"
FILE: dict[str, Any] = {"type": os.path.abspath, "metavar": "FILE"}  # of an option that names a file
DATA: dict[str, Any] = FILE | {"group": "data"}
MACHINE: dict[str, Any] = {"group": "machine", "free": True}
RUN: dict[str, Any] = {"group": "the run", "free": True}
EVERY = 60  # default seconds between saves
ASKED = ("resume", "previous", "overwrite", "out")  # options of a command, not of its run


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options of every model; `seed` determines all random draws."""

    device: str | None = option(None, DEVICE, **MACHINE)
    threads: int | None = option(None, THREADS, type=positive, **MACHINE)
    seed: int = option(0, "random seed", group="machine", type=whole)
    save_every: float = option(
        EVERY,
        "time between saves; 0: save only at the start, after each epoch and at the end",
        type=number,
        metavar="SECONDS",
        **RUN,
    )
    patience: int = option(
        0,
        "stop after N validations without improvement (0: never); eval and export then use the best checkpoint",
        type=whole,
        metavar="N",
        **RUN,
    )
    tensorboard: bool = option(False, "also write the curve to OUT/tensorboard", **RUN)


class Parts:
    """A model and the parts that its options name; each declares options of the run.

    module      the model's module
    own         options of every run and of the model, by name
    registries  by option whose value names a part, such as "readout"
    """

    def __init__(self, kind: str):
        self.kind, self.module = kind, MODELS.load(kind)
        self.own = {**fields(RunOptions), **fields(self.module.Options)}
        self.registries: dict[str, Registry] = {
            name: field.metadata["registry"] for name, field in self.own.items() if field.metadata["registry"]
        }

    @functools.cached_property
    def choices(self) -> dict[str, dict[str, ModuleType]]:
        """The modules of the kinds that runs may name, by option and kind: those that declare options."""
        return {
            name: {kind: registry.load(kind) for kind in registry.having("Options")}
            for name, registry in self.registries.items()
        }

    def named(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Returns the part that each option names, or that its default under the other options names."""
        return {name: options.get(name) or cast(str, self._beside(name, options)) for name in self.registries}

    def _beside(self, name: str, options: Mapping[str, Any]) -> Any:
        field = self.own[name]
        if not field.metadata["by"]:
            return field.default
        other, values = field.metadata["by"]
        return values.get(options.get(other), field.default)

    def every(self) -> dict[str, dataclasses.Field[Any]]:
        """Returns all options that a run of this model can have, with any parts."""
        parts: dict[str, dataclasses.Field[Any]] = {}
        for modules in self.choices.values():
            for module in modules.values():
                parts |= fields(module.Options)
        return self.own | parts | self.own  # these first, and in place of others of the same name

    def validate(self, options: Mapping[str, Any]) -> None:
        """Raises ValueError for stored options with values that their flags do not accept."""
        for name, field in self._declared(options).items():
            if name in options and not possible(field, options[name]):
                raise ValueError(f"{name}: found {options[name]!r}, which {flag(name)} cannot be; the file was altered")

    def defaults(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the defaults of a run whose parts the options name, including those that depend on other options."""
        declared = self._declared(options)
        plain = {name: field.default for name, field in declared.items()}
        readout = options.get("readout") or plain.get("readout")
        usual = self._declared({"readout": readout, "trunk": "mlp"})  # options of the tuned parts
        tuned = {
            name: value
            for name, value in getattr(self.module, "TUNED", {}).get(readout, {}).items()
            if name in plain and declared[name] is usual[name]
        }
        found = plain | tuned
        for name, field in declared.items():
            if field.metadata["by"]:
                other, values = field.metadata["by"]
                value = options.get(other) or found[other]
                if isinstance(alias := values.get(value), str) and not isinstance(field.default, str):
                    value = alias
                if name not in tuned or value != tuned.get(other, plain[other]):
                    found[name] = values.get(value, plain[name])
        return found

    def _declared(self, options: Mapping[str, Any]) -> dict[str, dataclasses.Field[Any]]:
        """Returns the option fields of a run whose parts the options name."""
        declared: dict[str, dataclasses.Field[Any]] = {}
        for name, kind in self.named(options).items():
            declared |= fields(getattr(self.registries[name].load(kind), "Options", None))
        return declared | self.own

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Returns the options in the words of a command line; skips values that cannot be parsed."""
        read: dict[str, Any] = {}
        for name, field in self.every().items():
            for word, after in itertools.zip_longest(words, words[1:], fillvalue=""):
                value = after if word == flag(name) else word.removeprefix(f"{flag(name)}=")
                if word == flag(name) and field.default is False:
                    read[name] = True
                elif word == flag(name) or value != word:
                    choices = self.registries[name].names() if name in self.registries else None
                    with contextlib.suppress(ValueError, TypeError, argparse.ArgumentTypeError):
                        made = field.metadata["argument"].get("type", str)(value)
                        if made in (choices or field.metadata["argument"].get("choices", [made])):
                            read[name] = made
        return read

    def shown(self, options: Mapping[str, Any]) -> dict[str, tuple[dataclasses.Field[Any], str]]:
        """Returns the options of the parts that these name, each with its default under them, "" for none."""
        chosen = plain = self.defaults(options)
        with contextlib.suppress(ValueError):  # of contradictory options, which `choose` reports
            made = chosen | {name: value for name, value in options.items() if name in chosen}
            made = getattr(self.module, "complete", lambda chosen, explicit: chosen)(made, dict(options))
            chosen = chosen | made | {name: plain[name] for name in options if name in plain}
        return {
            name: (field, "" if chosen[name] in (None, False) else _text(chosen[name]))
            for name, field in self._declared(options).items()
        }

    def says(self, options: Mapping[str, Any]) -> str:
        """Returns the words of the command that selects these parts: the readout, and others that are not the default."""
        named = self.named(options)
        shown = [name for name, kind in named.items() if name == "readout" or kind != self.own[name].default]
        return " ".join([f"train {self.kind}", *(f"{flag(name)} {named[name]}" for name in shown)])

    def elsewhere(self, option: str) -> str:
        """Returns a phrase that names the parts that take an option; "" for none."""
        kinds = [(name, kind, module) for name, choices in self.choices.items() for kind, module in choices.items()]
        takers = [f"{flag(name)} {kind}" for name, kind, module in kinds if option in fields(module.Options)]
        return f" but by {' and '.join(takers)}" if takers else ""


def _text(value: Any) -> str:
    """Returns a value as typed on the command line."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def choose(kind: str, **explicit: Any) -> dict[str, Any]:
    """Returns the options of a run of this kind: the arguments, and defaults for all others. ValueError for
    contradictory, missing required, and unknown ones."""
    parts = Parts(kind)
    taken = parts.defaults(explicit)
    for name, field in parts.own.items():
        if field.metadata["needed"] and not explicit.get(name):
            raise ValueError(f"{flag(name)}: needed by `train {kind}`, found none")
    for name in sorted(given(explicit).keys() - taken.keys() - {"kind", *ASKED}):
        raise ValueError(f"{flag(name)}: not used by `{parts.says(explicit)}`{parts.elsewhere(name)}; leave it out")
    chosen = {name: explicit[name] if explicit.get(name) is not None else value for name, value in taken.items()}
    complete = getattr(parts.module, "complete", None)
    chosen = {"kind": kind} | (complete(chosen, explicit) if complete else chosen)
    return chosen | {name: explicit[name] for name in ASKED if name in explicit}


def free(kind: str) -> set[str]:
    """Returns the options that a resumed run may change: they affect no result."""
    return {name for name, field in Parts(kind).every().items() if field.metadata["free"]}


def kept(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options that are stored with the run, without those of the command that starts it."""
    every = Parts(options["kind"]).every()
    asked = {*ASKED, *(name for name, field in every.items() if not field.metadata["kept"])}
    return {name: value for name, value in options.items() if name not in asked}
