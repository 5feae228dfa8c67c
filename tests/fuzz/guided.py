"""python -m tests.fuzz.guided SUBJECT [options of libFuzzer]: cases that new lines of our code lead to, by atheris.

It begins with the good file of the subject, keeps what reaches new code, and stops at the first finding, whose file is in
build/fuzz. -runs=100000 ends it. Of a subject of several files the first is changed. pip install -e '.[fuzz]' brings atheris.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["hybrid"]):
    from .subjects import SUBJECTS

from . import worker

KEPT = Path("build/fuzz")


class Found(Exception):
    """A case that is none of the documented ones."""


def main(name: str, *options: str) -> None:
    """Runs until it finds something, or for as long as the options say."""
    with tempfile.TemporaryDirectory() as folder:
        good = worker.prepared(SUBJECTS[name], Path(folder) / name)
        file = good.files()[0]
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        (corpus / file.name).write_bytes(file.read_bytes())

        def case(content: bytes) -> None:
            file.write_bytes(content)
            found = worker.read(good.subject, good.path, file)
            if found:
                raise Found(found)

        KEPT.mkdir(parents=True, exist_ok=True)
        limits = [f"-timeout={worker.SECONDS:.0f}", f"-artifact_prefix={KEPT}/{name}-"]
        atheris.Setup([sys.argv[0], *limits, *options, str(corpus)], case)
        with worker.bounded():
            atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
