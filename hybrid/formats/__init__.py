"""Exchange formats: `svm` (LIBSVM, extreme classification) and `fasttext`.

`hybrid.vectors` reads word vectors, `hybrid.ratings` ratings. Files may be untrusted: a malformed one is rejected with its name
and line. No memory is allocated for an unverified size in a header.
"""

from . import fasttext, svm

__all__ = ["fasttext", "svm"]
