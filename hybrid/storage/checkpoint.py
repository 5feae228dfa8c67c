"""A run on disk: its arrays in one safetensors file, everything else in one JSON file that names it.

    FOLDER/checkpoint.json                 the facts, every array's dtype and shape, the tensor file's name and sha256
    FOLDER/checkpoint.previous.json        the save before
    FOLDER/tensors-<sha256>.safetensors    the arrays; named by its content, so a JSON file only ever meets its own

Never pickle: files from strangers are data. A save becomes visible by one rename, that of checkpoint.json, once all
that it names is on the disk; a crash at any moment leaves the last complete save. Who saves holds the folder alone.

The safetensors format (8 bytes length, a JSON header, the bytes of the arrays) is written and read here, array by array
between the disk and the live arrays: tables of several gigabytes exist once in memory, and a full disk keeps its errno.
"""

import contextlib
import hashlib
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import atomic, lock

CHECKPOINT = "checkpoint"  # the folder of a run's, within that of the run
FORMAT = 1
LATEST = "checkpoint.json"
PREVIOUS = "checkpoint.previous.json"
TENSORS = "tensors"
DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"}
DTYPES |= {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1"}
CHUNK = 2**22  # bytes that are hashed and written together: they stay in the cache between the two


def save(folder, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Path:
    """Write a checkpoint into `folder` (made when missing), keep the one before, and return the path of its JSON file.

    arrays  C-contiguous, of floats, integers or booleans; written from where they lie, nothing is copied
    facts   what else a resumed run needs, in the words of JSON (keys are strings; tuples come back as lists)

    Needs room for this checkpoint beside the two earlier ones. Raises ValueError for arrays or facts that cannot be
    saved, and OSError (full disk, unwritable folder); then the earlier ones are as they were.
    """
    folder = Path(folder)
    forms = _forms(arrays)
    _json("facts", facts)
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            atomic.settle(folder.parent)
        with lock.turn(folder) as alone:
            try:
                _publish(folder, forms, arrays, facts)
            finally:
                _tidy(folder, alone)
    except OSError as error:
        raise OSError(_why(folder, arrays, error)) from error
    return folder / LATEST


def _publish(folder: Path, forms: dict[str, dict], arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
    """Write all that needs room beside what is there; then two renames, of checkpoint.json and of the one before."""
    latest, digest = folder / LATEST, hashlib.sha256()
    tensors = atomic.written(folder / TENSORS, _pieces(forms, arrays, digest))
    name = f"{TENSORS}-{digest.hexdigest()[:16]}.safetensors"
    manifest = {"format": FORMAT, "file": name, "sha256": digest.hexdigest(), "arrays": forms, "facts": facts}
    atomic.publish(tensors, folder / name)
    earlier = atomic.written(folder / PREVIOUS, [latest.read_bytes()]) if latest.exists() else None
    atomic.write(latest, [_json("facts", manifest | {"checksum": _checksum(manifest)})])
    if earlier:
        atomic.publish(earlier, folder / PREVIOUS)


def stands(folder) -> bool:
    """Whether a save was ever completed in this folder."""
    return any((Path(folder) / name).exists() for name in (LATEST, PREVIOUS))


def erase(folder: Path) -> None:
    """Remove what saves have written, the latest one's name last, and the folder where nothing else is in it."""
    for name in (PREVIOUS, LATEST):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir():
        _tidy(folder, alone=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def read_facts(path) -> dict[str, Any]:
    """The facts of a checkpoint, without its arrays; path and errors as in `load`."""
    return _manifest(path)[1]["facts"]


def numbers(path) -> int:
    """How many numbers a checkpoint holds, which its file is held against; path and errors as in `load`.

    What facts tell of cannot be larger: so memory is taken for no more than lies on the disk.
    """
    source, manifest = _manifest(path)
    _verify_size(source, manifest)
    return sum(math.prod(form["shape"]) for form in manifest["arrays"].values())


@contextlib.contextmanager
def told(path) -> Iterator[None]:
    """While a model is made of the facts of a checkpoint: facts that tell of none are a ValueError that names the file."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        said = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: tells of no model ({said}); use the version that wrote it") from error


def load(path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the facts of a checkpoint: its folder or the run's (the latest save), or one of its JSON files.

    Raises FileNotFoundError for a missing file, and ValueError, with the file's name, for one that is truncated,
    altered or of another format.
    """
    source, manifest = _manifest(path)
    _verify(source, manifest)
    arrays = {name: np.empty(form["shape"], DTYPES[form["dtype"]]) for name, form in manifest["arrays"].items()}
    _read(source, manifest, arrays)
    return arrays, manifest["facts"]


def load_into(path, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Fill the arrays, of exactly the saved names, shapes and dtypes, from a checkpoint, and return its facts.

    Raises as `load` does, and ValueError for a checkpoint of another model; nothing is written before all is verified.
    """
    source, manifest = _manifest(path)
    expected, found = _forms(arrays), manifest["arrays"]
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"{source}: a checkpoint of another model: found {_say(name, found)}, expected {_say(name, expected)};"
                " use the options it was trained with"
            )
    _verify(source, manifest)
    _read(source, manifest, arrays)
    return manifest["facts"]


def _forms(arrays: dict[str, np.ndarray]) -> dict[str, dict]:
    """The dtype and shape of each array, in safetensors' words."""
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    for name, array in arrays.items():
        if array.dtype not in codes:
            raise ValueError(f"arrays[{name!r}]: found {array.dtype}, expected one of {', '.join(map(str, codes))}")
        if not array.flags.c_contiguous:
            raise ValueError(f"arrays[{name!r}]: found strides {array.strides}, expected C order; copy it first")
    return {name: {"dtype": codes[array.dtype], "shape": list(array.shape)} for name, array in arrays.items()}


def _places(forms: dict[str, dict]) -> dict[str, dict]:
    """The safetensors header: forms with their places in the file; wide items first, so that all lie aligned."""
    places, end = {}, 0
    for name in sorted(forms, key=lambda name: (-np.dtype(DTYPES[forms[name]["dtype"]]).itemsize, name)):
        begin = end
        end += np.dtype(DTYPES[forms[name]["dtype"]]).itemsize * math.prod(forms[name]["shape"])
        places[name] = forms[name] | {"data_offsets": [begin, end]}
    return places


def _prefix(forms: dict[str, dict]) -> bytes:
    """What stands before the arrays: the length of the header, and the header."""
    header = json.dumps(_places(forms)).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _pieces(forms: dict[str, dict], arrays: dict[str, np.ndarray], digest) -> Iterator[Any]:
    """The bytes of a safetensors file, each piece given to the digest on its way."""
    for raw in (memoryview(_prefix(forms)), *(_raw(arrays[name]) for name in _places(forms))):
        for at in range(0, raw.nbytes, CHUNK):
            digest.update(raw[at : at + CHUNK])
            yield raw[at : at + CHUNK]


def _raw(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _tidy(folder: Path, alone: bool) -> None:
    """Remove the tensor files that neither JSON file names and, where nobody else saves here, what an unfinished save left."""
    named = b"".join(path.read_bytes() for path in (folder / LATEST, folder / PREVIOUS) if path.exists())
    for path in folder.glob(f"{TENSORS}-{'[0-9a-f]' * 16}.safetensors"):
        if path.name.encode() not in named:
            path.unlink()
    if alone:
        atomic.sweep(folder, (TENSORS, LATEST, PREVIOUS))


def _manifest(path) -> tuple[Path, dict[str, Any]]:
    """The JSON file of a checkpoint, verified, and its path."""
    source = Path(path)
    if source.is_dir():
        within = source / CHECKPOINT
        source = (source if stands(source) or not stands(within) else within) / LATEST
    if not source.is_file():
        raise FileNotFoundError(f"{source}: no such checkpoint; expected a folder with {LATEST} in it{_remedy(source)}")
    try:
        manifest = json.loads(source.read_bytes())
        version, checksum = manifest["format"], manifest.pop("checksum")
        if version == FORMAT:
            _prefix(manifest["arrays"]), manifest["facts"], manifest["file"], manifest["sha256"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{source}: truncated, or not a checkpoint{_remedy(source)}") from None
    if version != FORMAT:
        raise ValueError(f"{source}: found format {version!r}, expected {FORMAT}; use the version that wrote it")
    if checksum != _checksum(manifest):
        raise ValueError(f"{source}: altered since it was saved: its checksum differs{_remedy(source)}")
    return source, manifest


def _verify(source: Path, manifest: dict[str, Any]) -> None:
    """Hold the tensor file against its size and its sha256."""
    path = _verify_size(source, manifest)
    with open(path, "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != manifest["sha256"]:
            raise ValueError(f"{path}: altered since it was saved: its sha256 differs{_remedy(source)}")


def _verify_size(source: Path, manifest: dict[str, Any]) -> Path:
    """The tensor file, held against its size alone."""
    path = source.parent / manifest["file"]
    if not path.is_file():
        raise FileNotFoundError(f"{path}: missing, and {source} needs it{_remedy(source)}")
    forms = manifest["arrays"]
    size = len(_prefix(forms)) + max((place["data_offsets"][1] for place in _places(forms).values()), default=0)
    if path.stat().st_size != size:
        raise ValueError(f"{path}: truncated: found {path.stat().st_size} bytes, expected {size}{_remedy(source)}")
    return path


def _read(source: Path, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Read the bytes straight into the arrays."""
    with open(source.parent / manifest["file"], "rb") as file:
        file.seek(len(_prefix(manifest["arrays"])))
        for name in _places(manifest["arrays"]):
            file.readinto(_raw(arrays[name]))


def _say(name: str, forms: dict[str, dict]) -> str:
    form = forms.get(name)
    return f"{name!r} {form['dtype']} {tuple(form['shape'])}" if form else f"no {name!r}"


def _checksum(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(_json("facts", manifest)).hexdigest()


def _json(name: str, value: Any) -> bytes:
    try:
        return json.dumps(value, indent=1, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected what JSON can say (no NaN, no arrays, no objects): {error}") from None


def _remedy(source: Path) -> str:
    previous = source.parent / PREVIOUS
    if source.name != LATEST or not previous.exists():
        return ""
    run = source.parent.parent if source.parent.name == CHECKPOINT else "RUN"
    return f"; the save before it is {previous}: load that, or hybrid train --resume {run} --previous"


def _why(folder: Path, arrays: dict[str, np.ndarray], error: OSError) -> str:
    need = sum(array.nbytes for array in arrays.values())
    free = shutil.disk_usage(next(path for path in (folder, *folder.absolute().parents) if path.exists())).free
    return (
        f"checkpoint {folder}: {error.strerror or error}: it needs {need / 1e6:,.1f} MB, {free / 1e6:,.1f} MB are free;"
        " make room or choose another folder; earlier checkpoints are as they were"
    )
