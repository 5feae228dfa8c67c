"""Files that other programs read and write: `svm` (LIBSVM, extreme classification), `fasttext`, `hdf5` (ann-benchmarks).

Word vectors have `hybrid.vectors`, ratings `hybrid.ratings`. What is read may come from a stranger: a file that is no such
file is refused with its name and line, and no memory is taken for what a header merely claims.
"""

from . import fasttext, hdf5, svm

__all__ = ["fasttext", "hdf5", "svm"]
