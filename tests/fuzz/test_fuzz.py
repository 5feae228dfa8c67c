"""Files and command lines of strangers: changed copies of good ones are read, or refused by name: make fuzz N=1000 SEED=0.

Hypothesis draws the changes, and shrinks those that find something. A finding is a case that raises what is not documented,
names no file where it refuses one, takes over 10 seconds of processor time or a GiB, or ends the process. Then the changed file
is in build/fuzz, and the same seed draws the same cases again. FUZZ_CASES and FUZZ_SEED are the numbers for pytest; without
them some subjects have a few cases.
"""

import contextlib
import copy
import hashlib
import io
import json
import os
import resource
import signal
import tempfile
import traceback
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import hypothesis
import numpy as np
import pyarrow
import pytest
from hypothesis import strategies
from PIL import Image
from pyarrow import parquet

from hybrid import PVM, machine, open_clips, open_run
from hybrid.cli import main as hybrid
from hybrid.cli import options
from hybrid.feeds import ratings, stream, text
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.formats import fasttext, svm, vectors
from hybrid.pvm.originals import checkpoint as originals
from hybrid.settings import flag
from hybrid.storage import checkpoint
from hybrid.train import runs
from hybrid.train.options import Parts
from tests.hybrid.pvm import tiny
from tests.support import original_files, saved_arrays, small_runs
from tests.support.imports import ROOT

CASES, SEED = int(os.environ.get("FUZZ_CASES", 0)), int(os.environ.get("FUZZ_SEED", 0))
QUICK = "text vocabulary ratings vectors-npz labels-svm pvm-json checkpoint-sealed images run-words".split()
MEMORY = 2**30  # bytes beyond what the process has once a good file was read
SECONDS = 10.0  # of processors, so that a busy machine finds nothing
HUNG = 60.0  # seconds by the clock, after which the process ends: the alarm did not end the case
CODES = (0, 1, 2, 130)  # those of hybrid/cli/command_line.py

# Changed copies

LETTERS = b"0123456789:,.- \n\t#e\"'[]{}=/\\"
NUMBERS = (0, -1, 1, 2, 1.5, 2**31, 2**31 - 1, 2**63, 10**400, 1e308, -1e308, 1e-320, float("nan"), float("inf"))
TEXTS = ("", " ", "\0", "\x1b[31m", "../x", "/etc/passwd", "é", "\ud800", "x" * 100_000, "1", "None", "cuda:9")
OTHERS = (None, True, False, [], {}, [[]], [None], {"": 0}, [0] * 1000)
NAMES = ("../x", "/x", "./img1.png", "a/../../x", "", "con", "x" * 300, "\x1b[31m.png")


def changed(name: str, content: bytes, rng: Random) -> bytes:
    """One copy; what is changed within depends on what it is."""
    within = of_json if name.endswith(".json") else of_zip if zipfile.is_zipfile(io.BytesIO(content)) else None
    return within(content, rng) if within and rng.random() < 0.6 else of_bytes(content, rng)


def of_bytes(content: bytes, rng: Random) -> bytes:
    """Cut short, a part twice, a part left out, or bytes of others or of digits and separators in their place."""
    found = bytearray(content)
    first, last = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    match rng.randrange(6):
        case 0:
            del found[first:]
        case 1:
            found[first:first] = content[first : min(last, first + 50)]
        case 2:
            del found[first : min(last, first + 20)]
        case kind:
            for _ in range(1 + rng.randrange(7)):
                at = rng.randrange(max(1, len(content)))
                found[at : at + 1] = bytes([rng.choice(LETTERS) if kind == 3 else rng.randrange(256)])
    return bytes(found)


def of_json(content: bytes, rng: Random) -> bytes:
    """Some values are others; now and then a name is gone or new, or it is nested deeper than anyone expects."""
    if rng.random() < 0.03:
        return b"[" * 20_000 + b"]" * 20_000
    top = [json.loads(content)]
    for _ in range(1 + rng.randrange(3)):
        holder, key = rng.choice(list(_places(top)))
        match rng.randrange(8):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(value(rng))[:50]] = holder[key]
            case _:
                holder[key] = value(rng)
    return json.dumps(top[0], default=str).encode("utf-8", "surrogatepass")


def _places(whole: Any) -> Iterator[tuple[Any, Any]]:
    """All places of a value of JSON; of a long list, those at its beginning."""
    pairs = whole.items() if isinstance(whole, dict) else enumerate(whole[:20]) if isinstance(whole, list) else ()
    for key, inner in pairs:
        yield whole, key
        yield from _places(inner)


def value(rng: Random) -> Any:
    """One that nobody expects."""
    kind = rng.choice((NUMBERS, NUMBERS, NUMBERS, TEXTS, OTHERS))
    return copy.deepcopy(rng.choice(kind))  # it may be changed further


def of_zip(content: bytes, rng: Random) -> bytes:
    """A member changed, gone, named otherwise, there twice, or large where it is small as packed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(one.filename, archive.read(one)) for one in archive.infolist()]
    at = rng.randrange(len(members))
    name, inside = members[at]
    match rng.randrange(8):
        case 0:
            members[at] = rng.choice(NAMES), inside
        case 1:
            members.append((name, of_bytes(inside, rng)))
        case 2:
            members[at : at + 1] = [(name, bytes(30_000_000))] * (rng.random() < 0.1)
        case _:
            members[at] = name, changed(name, inside, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in members:
            archive.writestr(zipfile.ZipInfo(one), data)
    return packed.getvalue()


def sealed(name: str, content: bytes, rng: Random) -> bytes:
    """A checkpoint's JSON file, changed by somebody who knows how its checksum is made."""
    found = of_json(content, rng)
    with contextlib.suppress(ValueError, KeyError, AttributeError, TypeError, RecursionError):
        manifest = json.loads(found)
        manifest.pop("checksum")
        manifest["checksum"] = hashlib.sha256(json.dumps(manifest, indent=1, allow_nan=False).encode()).hexdigest()
        found = json.dumps(manifest, indent=1).encode()
    return found


# What is read


class Subject(NamedTuple):
    """A reader: make writes good files into a folder and returns the path that is read; one that `files` match is changed.

    named   a refusal must name the file
    share   of the cases of another: less, where one takes long
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    files: str = "*"
    change: Callable[[str, bytes, Random], bytes] = changed
    named: bool = True
    share: float = 1.0


WORDS = ["the", "value", "of", "é", "a", "name"]
ROWS = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)
TEXT = "the value of a name\nthe name é of the value\n" * 5
RATED = "user,item,rating,timestamp\n" + "".join(f"u{n % 5},i{n % 7},{n % 5},{n}\n" for n in range(40))
LABELLED = "__label__a __label__b some words\n__label__c more\n" * 4
SPARSE = "4 6 3\n0,1 0:1 3:0.5\n2 1:2 5:1e-3\n1 2:1\n0 4:-1\n"


def file(name: str, content: str | Callable[[Path], Any]) -> Callable[[Path], Path]:
    """One file, of a text or of what writes it."""

    def make(folder: Path) -> Path:
        write = content if callable(content) else partial(Path.write_text, data=content)
        write(folder / name)
        return folder / name

    return make


def tabular(columns: dict[str, list[Any]]) -> Callable[[Path], Path]:
    """A Parquet file."""
    return file("table.parquet", lambda path: parquet.write_table(pyarrow.table(columns), path))


def sentences(path: Path) -> Any:
    """Those of a file that is read piece by piece."""
    return list(stream.Lines(path))


def images(path: Path) -> None:
    """Small pictures, packed."""
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(4):
            packed = io.BytesIO()
            Image.fromarray(np.full((8, 8, 3), 50 * number, np.uint8)).save(packed, "PNG")
            archive.writestr(f"img{number}.png", packed.getvalue())


def arrays(folder: Path) -> Path:
    """A checkpoint of arrays."""
    checkpoint.save(folder, saved_arrays.arrays(), {"tick": 3, "rate": 0.1, "names": ["a", None]})
    return folder


def run_of(kind: str) -> Callable[[Path], Path]:
    """The folder of a small run; what it was trained on is beside it, and stays as it is."""

    def make(folder: Path) -> Path:
        more = ["--min-count", "1"] if kind == "language" else []
        words = small_runs.command(kind, small_runs.write_data(folder), folder / "run")
        assert hybrid([*words, *more, "--device", "cpu", "--quiet"]) == 0
        return folder / "run"

    return make


# Command lines

VALUES = "-1 3.5 1e18 1e-300 1e300 nan inf -inf 100000 5000 4294967296 a é / . ../x /dev/null /proc/self/mem".split()
VALUES += "cuda:0 cuda:99 auto 1,2,3 1:2 {} [ -- - full tree".split()
VALUES += ["1" + "0" * 400, "", " ", "\x1b[31m", "x" * 5_000]
LIKELY = "0 1 2 3 7 63 64 65 1000 1000000 1000000000 0.5 1e-30 1e30 1,2 2,2".split()  # the parser lets them pass
LEFT = {"--help", "--version", "--live", "--tensorboard", "--out", "--debug", "--resume", "--module"}
KINDS = (*small_runs.KINDS, "labels")


def begun(folder: Path) -> Path:
    """Runs of every model, and a file of commands that are well; more often such as train."""
    small = ["--threads", "1", "--device", "cpu"]
    data = small_runs.write_data(folder)
    trains = [small_runs.command(kind, data, folder / "out") for kind in KINDS]
    told = {kind: str(folder / kind) for kind in small_runs.KINDS}
    for kind, run in told.items():
        assert hybrid([*small_runs.command(kind, data, run), "--quiet"]) == 0
    good = [[*words, *small, "--overwrite"] for words in trains] * 2
    good += [[*words, run, *small] for words in (["train", "--resume"], ["eval"]) for run in told.values()]
    good += [["export", told["words"], str(folder / "exported.txt"), "--overwrite"]]
    good += [["recommend", told["factors"], *who] for who in (["--users", "1"], ["--history", "1,2"])]
    good += [["next", told["language"], "noun1 verb1"], ["pvm", "watch", told["pvm"], "--steps", "2"]]
    (folder / "words.json").write_text(json.dumps({"good": good, "words": good[0]}))
    return folder / "words.json"


def absurd(name: str, content: bytes, rng: Random) -> bytes:
    """One of the good commands, of which an option or two have values that nobody expects, or a word is another."""
    known = json.loads(content)["good"]
    words = list(rng.choice(known))
    top, chosen = options.parsers(words[0], words[1:])
    own = {one: action for action in (chosen or top)._actions for one in action.option_strings if one.startswith("--")}
    if words[0] == "train" and not words[1].startswith("-"):
        used = {flag(name) for name in Parts(words[1]).every()}
        own = {one: action for one, action in own.items() if one in used}
    for _ in range(rng.choice((1, 1, 2))):
        if own and rng.random() < 0.9:
            option = rng.choice(sorted(own.keys() - LEFT))
            likely = [str(one) for one in own[option].choices or LIKELY]
            given = [] if own[option].nargs == 0 else [rng.choice(VALUES if rng.random() < 0.3 else likely)]
            words += [option, *given]  # the last one counts
        elif words[(at := rng.randrange(1, len(words) + 1)) - 1] != "--out":  # else it might write anywhere
            words[at : at + 1] = [rng.choice(VALUES)]
    return json.dumps({"good": known, "words": words}).encode()


def obeyed(path: Path) -> None:
    """Training ends after its first tick, as by Ctrl-C; AssertionError for a code that is none of the documented ones."""
    words = json.loads(path.read_text())["words"]
    with pytest.MonkeyPatch.context() as patch:
        small_runs.stop_at(patch, None, partial(signal.default_int_handler, signal.SIGINT, None))
        try:
            code = hybrid(words)
        except SystemExit as stopped:  # argparse
            code = stopped.code
    assert code in CODES, f"{words}: code {code}"


SUBJECTS = {
    "text": Subject(file("text.txt", TEXT), text.read),
    "text-streamed": Subject(file("text.txt", TEXT), sentences),
    "text-parquet": Subject(tabular({"text": ["the value of a name", "é of the value"] * 5}), sentences),
    "vocabulary": Subject(file("v.json", Vocabulary(WORDS, [9, 7, 5, 4, 2, 1]).save), Vocabulary.load),
    "ratings": Subject(file("u.data", RATED.partition("\n")[2].replace(",", "\t")), ratings.load),
    "ratings-csv": Subject(file("ratings.csv", RATED), ratings.load),
    "ratings-parquet": Subject(tabular({"user": ["a", "b", "a", "c"] * 3, "item": [1, 2, 3] * 4}), ratings.load),
    "vectors-npy": Subject(file("vectors.npy", lambda path: np.save(path, ROWS)), vectors.open_vectors),
    "labels-fasttext": Subject(file("train.txt", LABELLED), fasttext.load),
    "labels-svm": Subject(file("train.svm", SPARSE), svm.load),
    "pvm-json": Subject(file("tiny.json", json.dumps(tiny.TINY)), partial(PVM.from_config, threads=1, device="cpu")),
    "pvm-original": Subject(
        file("simulation.zip", lambda path: original_files.save(path, original_files.trained(frames=2)[0])),
        originals.read,
    ),
    "images": Subject(
        file("clip.zip", images),
        lambda path: [clip[number] for clip in open_clips(str(path), (4, 4, 3)) for number in range(len(clip))],
    ),
    "checkpoint": Subject(arrays, checkpoint.load),
    "checkpoint-sealed": Subject(arrays, checkpoint.load, "checkpoint.json", sealed),
    "commands": Subject(begun, obeyed, "words.json", absurd, named=False, share=0.5),
}
AGAIN = {"device": "cpu", "threads": 1}
for form in ("text", "binary", "npz"):
    save = partial(vectors.save, words=WORDS, rows=ROWS, format=form)
    SUBJECTS[f"vectors-{form}"] = Subject(file(f"vectors.{form}", save), vectors.open_vectors)
for kind in KINDS:
    every, latest = "run/**/*.json", "run/checkpoint/checkpoint.json"
    opened = Subject(run_of(kind), partial(open_run, device="cpu", threads=1), every)
    resumed = Subject(run_of(kind), lambda path: runs.resume(str(path), AGAIN), every, named=False, share=0.1)
    for name, subject in (("run", opened), ("resumed", resumed)):
        SUBJECTS[f"{name}-{kind}"] = subject
        SUBJECTS[f"{name}-{kind}-sealed"] = subject._replace(files=latest, change=sealed)


# Cases


class Finding(Exception):
    """What is wrong with how a changed file was read or refused."""


class TooLong(BaseException):
    """A case took longer than SECONDS."""


def fuzz(name: str, cases: int, kept: Path) -> None:
    """Do so many cases of a subject; raises a Finding, the smallest. What is read lies in `kept` meanwhile."""
    subject = SUBJECTS[name]
    # What is written by an odd name is gone with the folder.
    with tempfile.TemporaryDirectory() as home, contextlib.chdir(home):
        (folder := Path(home, "good")).mkdir()
        path = subject.make(folder)
        subject.read(path)  # compiles, imports, and must be well
        files = {file: file.read_bytes() for file in sorted(folder.glob(subject.files)) if file.is_file()}

        unbounded = {"database": None, "deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}
        phases = hypothesis.Phase.generate, hypothesis.Phase.shrink

        @hypothesis.seed(SEED)
        @hypothesis.settings(max_examples=max(1, int(cases * subject.share)), phases=phases, **unbounded)
        @hypothesis.given(strategies.randoms(use_true_random=False))
        def case(rng: Random) -> None:
            file = rng.choice(list(files))
            file.write_bytes(subject.change(file.name, files[file], rng))
            (kept / name).with_suffix(file.suffix).write_bytes(file.read_bytes())
            try:
                _read(subject, path, file)
            finally:
                file.write_bytes(files[file])

        with bounded():
            case()
    for file in kept.glob(f"{name}.*"):
        file.unlink()


def _read(subject: Subject, path: Path, file: Path) -> None:
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, HUNG)
    try:
        subject.read(path)
    except BaseException as error:
        if what := _wrong(error, {file.name, path.name} if subject.named else {""}):
            raised = "".join(traceback.format_exception(error, limit=-1))[:1000]
            raise Finding(f"{what}: {raised}") from None  # errors of one kind are one finding, wherever they are raised
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _wrong(error: BaseException, names: set[str]) -> str:
    """What is wrong with an error, which should say one of the names; nothing where it is as documented."""
    match error:
        case ValueError() | IndexError() | OSError() | FloatingPointError():  # as in hybrid/cli/command_line.py
            said = f"{error} {getattr(error, 'filename', None) or ''}"
            return "" if any(name in said for name in names) else "refused without the file's name"
        case MemoryError():  # if it says what it expected, it was asked before it was taken
            return "" if "expected" in str(error) else f"over {MEMORY / 2**30:g} GiB"
        case TooLong():
            return f"over {SECONDS:g} s"
    return "undocumented"


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Meanwhile this process may take so much memory more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, before[1]))
    try:
        with mock.patch.object(machine, "memory", lambda: MEMORY):  # by which a model is refused before it is made
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _late(*_: Any) -> None:
    raise TooLong


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUBJECTS if CASES else QUICK)
def test_what_strangers_send_is_read_or_refused_by_name(tmp_path: Path, name: str) -> None:
    kept = ROOT / "build" / "fuzz" if CASES else tmp_path
    kept.mkdir(parents=True, exist_ok=True)
    fuzz(name, CASES or 20, kept)


def test_a_planted_fault_is_found_and_its_file_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fails = Subject(file("text.txt", TEXT), lambda path: None if path.read_bytes() == TEXT.encode() else {}.popitem())
    monkeypatch.setitem(SUBJECTS, "planted", fails)
    with pytest.raises(Finding, match=r"(?s)undocumented: .*KeyError"):
        fuzz("planted", 20, tmp_path)
    assert (tmp_path / "planted.txt").stat().st_size < len(TEXT)
