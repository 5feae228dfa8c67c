"""A function in a program of the user's, named FILE.py:FUNCTION, that makes a torch module."""

import argparse
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .... import console
from .consent import refuse_stranger
from .place import drawing


def absolute(text: str) -> str:
    """FILE.py:FUNCTION with the whole path of the file, as a run keeps it."""
    file, _, function = text.rpartition(":")
    if not file or not function.isidentifier():
        raise argparse.ArgumentTypeError(f"found {text!r}, expected FILE.py:FUNCTION")
    return f"{os.path.abspath(file)}:{function}"


def call(reference: str, arguments: dict[str, Any]) -> Any:
    """What the function returns: it is called with those of the arguments that it has, by name; "seed" seeds PyTorch.

    Raises OSError for a file that cannot be read, and for one that the user has not named (consent.py); ValueError, naming
    file and function, where one of them fails or is missing.
    """
    import torch

    path, name = _split(reference)
    path.read_bytes()  # OSError where it cannot be read
    refuse_stranger(path)
    with drawing([torch.default_generator], (arguments["seed"],)):
        try:
            function = _function(path, name)
            taken = inspect.signature(function).parameters
            every = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
            return function(**{name: value for name, value in arguments.items() if every or name in taken})
        except Exception as failure:
            raise ValueError(f"--module: {path}:{name} fails: {type(failure).__name__}: {failure}") from failure


def _function(path: Path, name: str) -> Callable[..., Any]:
    """Run the program, which may import its neighbours, and find its function."""
    spec = importlib.util.spec_from_file_location(f"module_of_run_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError("expected a file of Python, FILE.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # where its classes are looked up
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"it has no function {name}; expected FILE.py:FUNCTION")
    made: Callable[..., Any] = function
    return made


def told(reference: str) -> dict[str, str]:
    """The reference, and the sha256 of the file as it is now."""
    path, _ = _split(reference)
    return {"module": reference, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def compare(reference: str | None, before: dict[str, str] | None) -> None:
    """Say on stderr where the file is another one than that which `told` told of."""
    if reference and before and told(reference)["sha256"] != before["sha256"]:
        console.note(f"--module: {_split(reference)[0]} has changed since the run was saved")


def _split(reference: str) -> tuple[Path, str]:
    file, _, function = reference.rpartition(":")
    return Path(file), function
