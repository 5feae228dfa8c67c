"""Texts larger than memory: read by pieces, kept as ids in files, and learned from chunk by chunk."""

from .cache import stored
from .corpus import StoredCorpus
from .language import StreamedLanguageFeed
from .source import lines

__all__ = ["StoredCorpus", "StreamedLanguageFeed", "lines", "stored"]
