"""Checkpoints on disk: all arrays in one safetensors file, and one JSON file that references it.

    FOLDER/checkpoint.json                 the facts, every array's dtype and shape, the tensor file's name and sha256
    FOLDER/checkpoint.previous.json        the previous save
    FOLDER/tensors-<sha256>.safetensors    the arrays; named by their hash, so a JSON file always matches its own

No pickle: untrusted files are data. A save becomes visible by one rename, that of checkpoint.json, after everything it
references is on disk. A crash at any moment leaves the last complete save. Writers of one folder take turns.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import files, lock, safetensors
from .safetensors import Arrays, Forms, Runs, Written

CHECKPOINT = "checkpoint"  # subfolder of a run with the checkpoint to resume from
FORMAT = 1
LATEST = "checkpoint.json"
PREVIOUS = "checkpoint.previous.json"
TENSORS = "tensors"


def save(folder: str | Path, arrays: Written, facts: dict[str, Any]) -> Path:
    """Writes a checkpoint into `folder` (created if missing), keeps the previous one, returns the path of its JSON file.

    arrays  C-contiguous floats, integers or booleans, written without copies. Or `Pieced`, whose pieces are requested once,
            in file order
    facts   other data for a resumed run, JSON-able (string keys; tuples come back as lists)

    The disk needs space for three checkpoints: this one and the two before it. Raises ValueError for arrays or facts that
    cannot be saved, and for a run's folder that this process does not work on; OSError (full disk, unwritable folder).
    Earlier checkpoints are then unchanged.
    """
    folder = Path(folder)
    files.refuse_run(folder / LATEST)
    forms = safetensors.forms(arrays)
    _json("facts", facts)
    try:
        lock.keep(folder)
        files.make(folder)
        with lock.turn(folder) as alone:
            try:
                _publish(folder, forms, arrays, facts)
            finally:
                tidy(folder, alone)
    except OSError as error:
        raise OSError(_why(folder, arrays, error)) from error
    return folder / LATEST


def _publish(folder: Path, forms: Forms, arrays: Written, facts: dict[str, Any]) -> None:
    """Writes all data first; then two renames publish checkpoint.json and the previous one."""
    latest, digest = folder / LATEST, hashlib.sha256()
    tensors = files.written(folder / TENSORS, safetensors.pieces(forms, arrays, digest))
    name = f"{TENSORS}-{digest.hexdigest()[:16]}.safetensors"
    manifest = {"format": FORMAT, "file": name, "sha256": digest.hexdigest(), "arrays": forms, "facts": facts}
    files.publish(tensors, folder / name)
    earlier = files.written(folder / PREVIOUS, [_bytes(latest)]) if latest.exists() else None
    files.write(latest, [_json("facts", manifest | {"checksum": _checksum(manifest)})])
    if earlier:
        files.publish(earlier, folder / PREVIOUS)


def stands(folder: str | Path) -> bool:
    """True if a save was ever completed in this folder."""
    return any((Path(folder) / name).exists() for name in (LATEST, PREVIOUS))


def erase(folder: Path) -> None:
    """Removes all files of saves, the latest name last, and the folder if it is then empty.

    Each removal is synced before the next and before that of the referenced data. A power cut leaves a complete checkpoint or
    none.
    """
    if not folder.is_dir():
        return
    for name in (PREVIOUS, LATEST):
        (folder / name).unlink(missing_ok=True)
        files.settle(folder)
    tidy(folder, alone=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def read_facts(path: str | Path) -> dict[str, Any]:
    """Returns the facts of a checkpoint, without its arrays; path and errors as in `load`."""
    return _manifest(path)[1].facts


def numbers(path: str | Path) -> int:
    """Returns the count of numbers in a checkpoint's arrays, after a check of its size. Path and errors as in `load`.

    It bounds the size of a model built from the facts, so memory stays within the size of the file.
    """
    source, manifest = _manifest(path)
    _verify_size(source, manifest)
    return safetensors.count(manifest.arrays)


@contextlib.contextmanager
def rebuilding(path: str | Path) -> Iterator[None]:
    """A context that builds a model from a file's facts: invalid ones raise ValueError, too large a model MemoryError."""
    with files.named(path):
        try:
            yield
        except (TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            text = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path}: describes no model ({text}); use the version that wrote it") from error
        except MemoryError as error:
            text = "describes a model beyond this machine's memory"
            raise MemoryError(f"{path}: {text} ({error}); expected a smaller one") from error


def load(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns the arrays and the facts of a checkpoint.

    path  its folder or that of its run, for the latest save; or one of its JSON files

    Raises FileNotFoundError for a missing file, and ValueError, with the file's name, for one that is truncated, altered or
    of another format.
    """
    source, manifest = _manifest(path)
    _verify(source, manifest)
    arrays = safetensors.empty(manifest.arrays)
    safetensors.read_into(arrays, source.parent / manifest.file, manifest.arrays)
    return arrays, manifest.facts


def load_into(path: str | Path, arrays: Arrays) -> dict[str, Any]:
    """Fills arrays of exactly the saved names, shapes and dtypes from a checkpoint; returns its facts.

    Raises as `load` does, and ValueError for a checkpoint of another model; writes nothing before all is verified.
    """
    source, manifest = _manifest(path)
    _refuse_other(source, safetensors.forms(arrays), manifest.arrays)
    _verify(source, manifest)
    safetensors.read_into(arrays, source.parent / manifest.file, manifest.arrays)
    return manifest.facts


def verify(path: str | Path, forms: Forms) -> None:
    """Raises the errors of `load_into` for a checkpoint that is damaged or whose arrays have other forms."""
    source, manifest = _manifest(path)
    _refuse_other(source, forms, manifest.arrays)
    _verify(source, manifest)


def load_runs(path: str | Path, runs: Mapping[str, Runs]) -> None:
    """Reads runs of some arrays from an already verified checkpoint; only its size is checked."""
    source, manifest = _manifest(path)
    _verify_size(source, manifest)
    safetensors.read_runs(runs, source.parent / manifest.file, manifest.arrays)


def _refuse_other(source: Path, expected: Forms, saved: Forms) -> None:
    for name in sorted(expected.keys() | saved.keys()):
        if expected.get(name) != saved.get(name):
            raise ValueError(
                f"{source}: a checkpoint of another model: found {_say(name, saved)}, expected {_say(name, expected)};"
                " use the options it was trained with"
            )


def tidy(folder: Path, alone: bool) -> None:
    """Removes tensor files that no JSON file references and, with exclusive access, remnants of a killed save, if any."""
    named = b"".join(_bytes(path) for path in (folder / LATEST, folder / PREVIOUS) if path.exists())
    for path in folder.glob(f"{TENSORS}-{'[0-9a-f]' * 16}.safetensors"):
        if path.name.encode() not in named:
            path.unlink()
    if alone and folder.is_dir():
        files.sweep(folder, (TENSORS, LATEST, PREVIOUS))


class _Manifest(NamedTuple):
    """The content of a checkpoint's JSON file: tensor file name and digest, array forms, facts."""

    file: str
    sha256: str
    arrays: Forms
    facts: dict[str, Any]


def _manifest(path: str | Path) -> tuple[Path, _Manifest]:
    """Returns the path and verified content of a checkpoint's JSON file."""
    source = Path(path)
    if source.is_dir():
        within = source / CHECKPOINT
        source = (source if stands(source) or not stands(within) else within) / LATEST
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such checkpoint; expected a folder with {LATEST} in it{_remedy(source)}")
    try:
        stated = files.read(source)
        version, checksum = stated["format"], stated.pop("checksum")
        if version == FORMAT:
            manifest = _Manifest(*(stated[name] for name in _Manifest._fields))
            if not all(isinstance(stated[name], dict) for name in ("arrays", "facts")):
                raise ValueError
            safetensors.size(manifest.arrays)
            if Path(manifest.file).name != manifest.file:
                raise ValueError
        altered = checksum != _checksum(stated)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise ValueError(f"{source}: truncated, or not a checkpoint{_remedy(source)}") from None
    if version != FORMAT:
        raise ValueError(f"{source}: found format {version!r}, expected {FORMAT}; use the version that wrote it")
    if altered:
        raise ValueError(f"{source}: altered since it was saved: its checksum differs{_remedy(source)}")
    return source, manifest


def _verify(source: Path, manifest: _Manifest) -> None:
    """Raises ValueError or FileNotFoundError unless the tensor file has the recorded size and sha256."""
    path = _verify_size(source, manifest)
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != manifest.sha256:
            raise ValueError(f"{path}: altered since it was saved: its sha256 differs{_remedy(source)}")


def _verify_size(source: Path, manifest: _Manifest) -> Path:
    """Returns the path of the tensor file, after a check of its size."""
    path = source.parent / manifest.file
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing, and {source} needs it{_remedy(source)}")
    size = safetensors.size(manifest.arrays)
    if path.stat().st_size != size:
        raise ValueError(f"{path}: truncated: found {path.stat().st_size} bytes, expected {size}{_remedy(source)}")
    return path


def _bytes(path: Path) -> bytes:
    files.expect_file(path)
    return path.read_bytes()


def _say(name: str, forms: Forms) -> str:
    form = forms.get(name)
    return f"{name!r} {form['dtype']} {tuple(form['shape'])}" if form else f"no {name!r}"


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(_json("facts", manifest)).hexdigest()


def _json(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name}: expected values that JSON has (no NaN, array, object, depth): {error}") from None


def _remedy(source: Path) -> str:
    """Returns the end of a message: the previous save and how to resume from it."""
    previous = source.parent / PREVIOUS
    if source.name != LATEST or not previous.exists():
        return ""
    resume = f", or hybrid train --resume {source.parent.parent} --previous" if source.parent.name == CHECKPOINT else ""
    return f"; the save before it is {previous}: load that{resume}"


def _why(folder: Path, arrays: Written, error: OSError) -> str:
    """Returns the reason why a save failed, and the space it needs."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"checkpoint {folder}: {error.strerror}, expected a folder or a new name"
    need = sum(array.nbytes for array in arrays.values())
    free = shutil.disk_usage(next(path for path in (folder, *folder.absolute().parents) if path.exists())).free
    return (
        f"checkpoint {folder}: {error.strerror or error}: it needs {need / 1e6:,.1f} MB, {free / 1e6:,.1f} MB are free;"
        " make room or choose another folder; earlier checkpoints are as they were"
    )
