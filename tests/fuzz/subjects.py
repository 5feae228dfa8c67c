"""What is fuzzed: every reader of files, with a good file that it reads, and the command line (commands.py)."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hybrid.cli.commands import sweep
from hybrid.feeds import ratings, text
from hybrid.feeds.stream import source
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.formats import fasttext, svm
from hybrid.pvm.originals import recording
from hybrid.storage import vectors
from tests.hybrid.pvm import tiny

from . import mutations, runs
from .commands import commands
from .subject import Subject

WORDS = ["the", "value", "of", "é", "a", "name"]
ROWS = np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32)
SWEEP = """[sweep]
model = "language"
trials = 5
[fixed]
text = "book.txt"
min-count = 1
[vary]
rate = {from = 0.01, to = 0.1, log = true}
readout = ["tree", "full"]
"""


def written(name: str, content: str | bytes) -> Callable[[Path], Path]:
    """One file."""

    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def saved(name: str, **options: Any) -> Callable[[Path], Path]:
    """A file of vectors."""

    def make(folder: Path) -> Path:
        vectors.save(folder / name, WORDS, ROWS, **options)
        return folder / name

    return make


def packed(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """A zip, whatever its name says."""
    return mutations.changed("x.zip", content, rng)


def vocabulary(folder: Path) -> Path:
    """Of a few words."""
    Vocabulary(WORDS, [9, 7, 5, 4, 2, 1]).save(folder / "vocabulary.json")
    return folder / "vocabulary.json"


def matrix(folder: Path) -> Path:
    """Ratings as SciPy saves a matrix."""
    from scipy import sparse

    sparse.save_npz(folder / "ratings.npz", sparse.random(20, 15, 0.2, format="csr", random_state=0))
    return folder / "ratings.npz"


def images(folder: Path) -> Path:
    """A zip of small pictures."""
    from PIL import Image

    path = folder / "clip.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(4):
            packed = io.BytesIO()
            Image.fromarray(np.full((8, 8, 3), 50 * number, np.uint8)).save(packed, "PNG")
            archive.writestr(f"img{number}.png", packed.getvalue())
    return path


def frames(path: Path) -> Any:
    """All frames of the clips of a path."""
    from hybrid import open_clips

    return [clip[number] for clip in open_clips(str(path), (4, 4, 3)) for number in range(len(clip))]


def original(folder: Path) -> Path:
    """A checkpoint of the CUDA original."""
    from tests.support.original_files import save, trained

    return save(folder / "simulation.zip", trained(frames=2)[0])


def tabular(columns: dict[str, list[Any]]) -> Callable[[Path], Path]:
    """A Parquet file."""

    def make(folder: Path) -> Path:
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), folder / "table.parquet")
        return folder / "table.parquet"

    return make


def numbered(folder: Path) -> Path:
    """Vectors without names."""
    np.save(folder / "vectors.npy", ROWS)
    return folder / "vectors.npy"


def streamed(path: Path) -> list[Any]:
    """The sentences of a file that is read piece by piece."""
    return list(source.lines(path))


def labelled(folder: Path) -> Path:
    """A directory of pictures and boxes."""
    with zipfile.ZipFile(images(folder)) as archive:
        archive.extractall(folder)
    (folder / "clip.zip").unlink()
    (folder / "labels.txt").write_text("1,1,3,4\n" * 3 + "0,0,2,2\n")
    return folder


def film(folder: Path) -> Path:
    """A few frames as MJPEG in AVI."""
    import av

    with av.open(str(folder / "clip.avi"), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 32, 24, "yuvj420p"
        for number in range(5):
            picture = av.VideoFrame.from_ndarray(np.full((24, 32, 3), 40 * number, np.uint8), format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return folder / "clip.avi"


def recorded(folder: Path) -> Path:
    """A recording of an original, as far as it is read."""
    np.savez(
        folder / "recording.npz", config_json=np.array("{}"), weights_init=ROWS, t_frame_u8=np.zeros((2, 3), np.uint8)
    )
    return folder / "recording.npz"


def simulation(path: Path) -> Any:
    """Of a checkpoint of the CUDA original."""
    from hybrid.pvm.originals import checkpoint as originals

    return originals.read(path)


def configuration(path: Path) -> Any:
    """The model of a file."""
    from hybrid import PVM

    return PVM.from_config(path, threads=1, device="cpu")


def agreement(path: Path) -> Any:
    """Of vectors with people."""
    from hybrid.judge import similarity

    return similarity.agreement(path, WORDS, ROWS)


def analogies(path: Path) -> Any:
    """Of vectors."""
    from hybrid.judge import similarity

    return similarity.analogies(path, WORDS, ROWS)


def swept(path: Path) -> Any:
    """A file of `hybrid sweep`."""
    return sweep.read(path)


def toml(fields: dict[str, Any]) -> str:
    """Of values that JSON writes alike."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items() if not isinstance(value, dict))


FLAT = {name: value for name, value in tiny.TINY.items() if name not in ("readout", "schedule")}
RATED = "user,item,rating,timestamp\n" + "".join(f"u{n % 5},i{n % 7},{n % 5},{n}\n" for n in range(40))
SUBJECTS: dict[str, Subject] = {
    "text": Subject(written("text.txt", "the value of a name\nthe name é of the value\n" * 5), text.read),
    "vocabulary": Subject(vocabulary, Vocabulary.load),
    "ratings": Subject(
        written("u.data", "".join(f"{n % 5}\t{n % 7}\t{n % 4}\t{n}\n" for n in range(40))), ratings.load
    ),
    "ratings-csv": Subject(written("ratings.csv", RATED), ratings.load),
    "ratings-matrix": Subject(matrix, ratings.load, change=packed),
    "ratings-parquet": Subject(tabular({"user": ["a", "b", "a", "c"] * 3, "item": [1, 2, 3] * 4}), ratings.load),
    "text-streamed": Subject(written("text.txt", "the value of a name\nthe name é of the value\n" * 5), streamed),
    "text-parquet": Subject(tabular({"text": ["the value of a name", "é of the value"] * 5}), streamed),
    "vectors": Subject(saved("vectors.txt"), vectors.open_vectors),
    "vectors-binary": Subject(saved("vectors.bin", binary=True), vectors.open_vectors),
    "vectors-npz": Subject(
        saved("vectors.npz", format="npz"),
        vectors.open_vectors,
        change=packed,
    ),
    "vectors-tsv": Subject(saved("vectors.tsv", format="tsv"), vectors.open_vectors),
    "vectors-npy": Subject(numbered, vectors.open_vectors),
    "vectors-parquet": Subject(saved("vectors.parquet", format="parquet"), vectors.open_vectors),
    "similarity": Subject(written("pairs.tsv", "the\tvalue\t3.5\nof\ta\t1\nname\tthe\t9\na\tvalue\t2\n"), agreement),
    "analogies": Subject(written("questions.txt", ": capital\nthe value of a\n: gram1\nname the of a\n"), analogies),
    "labels-fasttext": Subject(
        written("train.txt", "__label__a __label__b some words\n__label__c more\n" * 4), fasttext.load
    ),
    "labels-svm": Subject(written("train.svm", "4 6 3\n0,1 0:1 3:0.5\n2 1:2 5:1e-3\n1 2:1\n0 4:-1\n"), svm.load),
    "pvm-json": Subject(written("tiny.json", json.dumps(tiny.TINY)), configuration),
    "pvm-toml": Subject(written("tiny.toml", toml(FLAT)), configuration),
    "pvm-original": Subject(original, simulation),
    "pvm-recording": Subject(recorded, recording.read, change=packed),
    "images": Subject(images, frames),
    "images-labelled": Subject(labelled, frames),
    "video": Subject(film, frames, share=0.3),
    "sweep": Subject(written("sweep.toml", SWEEP), swept),
    **runs.SUBJECTS,
    "commands": commands(),
}
