"""The old name of hybrid.engine.embedding, which pickles and programs of before know."""

from .engine.embedding import Embedding as Embedding
from .engine.embedding import _again as _again
