"""The old name of hybrid.feeds.vocabulary, which pickles and programs of before know."""

from .feeds.vocabulary import UNKNOWN as UNKNOWN
from .feeds.vocabulary import Vocabulary as Vocabulary
