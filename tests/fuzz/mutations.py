"""Changed copies of a good file, drawn by a generator: its bytes, and what it holds where that is JSON, TOML or a zip."""

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

LETTERS = np.frombuffer(b"0123456789:,.- \n\t#e\"'[]{}=/\\", np.uint8)
DEEP, LONG, LARGE = 20_000, 100_000, 30_000_000  # nested lists, characters, bytes of a member that compresses well
NUMBERS = (0, -1, 1, 2, 1.5, 2**31, 2**31 - 1, 2**63, 10**400, 1e308, -1e308, 1e-320, float("nan"), float("inf"))
TEXTS = ("", " ", "\0", "\x1b[31m", "../x", "/etc/passwd", "é", "\ud800", "x" * LONG, "1", "None", "cuda:9")
OTHERS = (None, True, False, [], {}, [[]], [None], {"": 0}, [0] * 1000)
NAMES = ("../x", "/x", "./img1.png", "a/../../x", "", "con", "x" * 300, "\x1b[31m.png")


def changed(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """One copy; what is changed within depends on how the name ends."""
    within = WITHIN.get(Path(name).suffix)
    if within is None and zipfile.is_zipfile(io.BytesIO(content)):
        within = of_zip
    if within and rng.random() < 0.6:
        return within(content, rng)
    return of_bytes(content, rng)


def of_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut short, a part twice, a part left out, or bytes of others or of digits and separators in their place."""
    found = bytearray(content)
    first, last = sorted(int(place) for place in rng.integers(0, len(content) + 1, 2))
    match rng.integers(6):
        case 0:
            del found[first:]
        case 1:
            found[first:first] = content[first : min(last, first + 50)]
        case 2:
            del found[first : min(last, first + 20)]
        case kind:
            letters = LETTERS if kind == 3 else np.arange(256, dtype=np.uint8)
            for place in rng.integers(0, max(1, len(content)), 1 + int(rng.integers(7))):
                found[place : place + 1] = bytes([rng.choice(letters)])
    return bytes(found)


def of_json(content: bytes, rng: np.random.Generator) -> bytes:
    """One value, or some, are others; now and then a name is gone or new, or it is nested deeper than anyone expects."""
    if rng.random() < 0.03:
        return b"[" * DEEP + b"]" * DEEP
    whole = json.loads(content)
    for _ in range(1 + int(rng.integers(3))):
        whole = _replaced(whole, rng)
    text = json.dumps(whole, default=str)
    return text.encode("utf-8", "surrogatepass")


def _replaced(whole: Any, rng: np.random.Generator) -> Any:
    """The same with another value somewhere."""
    places: list[tuple[Any, Any]] = []
    _look(whole, places)
    if not places:
        return value(rng)
    holder, key = places[int(rng.integers(len(places)))]
    if isinstance(holder, dict) and rng.random() < 0.15:
        del holder[key]
    elif isinstance(holder, dict) and rng.random() < 0.1:
        holder[str(value(rng))[:50]] = holder[key]
    elif isinstance(holder, list) and rng.random() < 0.15:
        holder.insert(key, holder[key])
    else:
        holder[key] = value(rng)
    return whole


def _look(whole: Any, places: list[tuple[Any, Any]]) -> None:
    """All places of a value of JSON; of a long list, those at both ends."""
    if isinstance(whole, dict):
        inner = list(whole.items())
    elif isinstance(whole, list):
        inner = [pair for pair in enumerate(whole) if pair[0] < 20 or pair[0] > len(whole) - 20]
    else:
        return
    for key, one in inner:
        places.append((whole, key))
        _look(one, places)


def value(rng: np.random.Generator) -> Any:
    """One that nobody expects."""
    kind = (NUMBERS, TEXTS, OTHERS)[int(rng.choice(3, p=[0.6, 0.2, 0.2]))]
    return copy.deepcopy(kind[int(rng.integers(len(kind)))])  # it may be changed further


def of_toml(content: bytes, rng: np.random.Generator) -> bytes:
    """One value of a line is another, as TOML or as something that is none."""
    lines = content.decode().splitlines()
    places = [number for number, line in enumerate(lines) if "=" in line]
    if not places:
        return of_bytes(content, rng)
    at = places[int(rng.integers(len(places)))]
    said = json.dumps(value(rng), default=str) if rng.random() < 0.9 else "[" * 2_000 + "]" * 2_000
    lines[at] = re.sub(r"=.*", lambda _: f"= {said}", lines[at])
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def of_zip(content: bytes, rng: np.random.Generator) -> bytes:
    """A member changed, gone, named otherwise, there twice, or large where it is small as packed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    at = int(rng.integers(len(members)))
    name, inside = members[at]
    match rng.integers(6):
        case 0:
            del members[at]
        case 1:
            members[at] = NAMES[int(rng.integers(len(NAMES)))], inside
        case 2:
            members.append((name, of_bytes(inside, rng)))
        case 3 if rng.random() < 0.1:
            members[at] = name, bytes(LARGE)
        case _:
            members[at] = name, changed(name, inside, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in members:
            archive.writestr(zipfile.ZipInfo(one), data)
    return packed.getvalue()


WITHIN: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {".json": of_json, ".toml": of_toml, ".zip": of_zip}
