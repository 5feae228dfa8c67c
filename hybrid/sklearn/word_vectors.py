"""Word vectors as a transformer: documents in, the means of their words' vectors out."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .. import check
from ..engine import Embedding, Engine
from ..feeds.pairs import PairFeed
from ..feeds.text import TOKENS, Corpus
from ..feeds.vocabulary import Vocabulary
from ..models import words
from . import training

Document = str | Sequence[str]


class WordVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Vectors of words, learned from the words beside them; a document becomes the mean of its words' vectors.

    width         numbers of a vector
    model         "skipgram" or "cbow"
    readout       "tree": hierarchical softmax; "sampled": negative sampling
    window        most words on each side
    min_count     rarer words are left out
    sample        subsampling of frequent words (0: none)
    epochs        passes over the documents
    batch         examples a tick, at whose end the rate falls; None: as many as there are words, 32 to 16384
    rate          step of the vectors and of the readout; it falls linearly to 0
    tokens        how documents that are strings are cut: "words" or "whitespace"
    lower         make their upper case lower case first
    random_state  of the first vectors and of all draws
    n_jobs        threads; results do not depend on it, nor does learning become faster
    verbose       1: progress on stderr

    Documents are strings, or lists of words, which are taken as they are. After `fit`:

    words_    (V,) array of strings, frequent ones first
    vectors_  (V, width) float32, a row for each of them
    losses_   mean loss of each epoch, in nats
    engine_   the Engine

    Mikolov et al. 2013, arXiv:1301.3781 and 1310.4546. ValueError for documents with fewer than two words that occur often
    enough, and for what is no list of documents.
    """

    def __init__(
        self,
        width: int = 100,
        *,
        model: str = "skipgram",
        readout: str = "tree",
        window: int = 5,
        min_count: int = 5,
        sample: float = 1e-3,
        epochs: int = 5,
        batch: int | None = None,
        rate: float = 0.025,
        tokens: str = "words",
        lower: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.width = width
        self.model = model
        self.readout = readout
        self.window = window
        self.min_count = min_count
        self.sample = sample
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.tokens = tokens
        self.lower = lower
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @training.whole
    def fit(self, X: Iterable[Document], y: Any = None) -> "WordVectors":
        """Learn the vectors of the words in documents; y is not used."""
        documents = self._cut(X)
        vocabulary = Vocabulary.build(documents, min_count=self.min_count, unknown=False, source="X")
        seed = training.seed(self.random_state)
        feed = PairFeed(
            Corpus(documents, vocabulary),
            model=self.model,
            window=self.window,
            sample=self.sample,
            mean_batch=self.batch or words.batch_of(len(vocabulary)),
            epochs=self.epochs,
            seed=seed,
        )
        self.engine_ = self._untrained(feed, seed)
        self.losses_ = training.run(self.engine_, feed, self.verbose)
        self.words_ = np.array(vocabulary.words)
        self.vectors_ = self.engine_.embedding.table
        self._vocabulary = vocabulary
        return self

    def transform(self, X: Iterable[Document]) -> np.ndarray:
        """The mean of each document's vectors, (n, width) float32; words that are not known do not count, none: zeros."""
        check_is_fitted(self)
        ids = [self._vocabulary.encode(document) for document in self._cut(X)]
        sizes = np.array([len(row) for row in ids], np.int64)
        share = np.repeat(1 / np.maximum(sizes, 1), sizes).astype(np.float32)
        places = np.concatenate([[0], np.cumsum(sizes)])
        table = (share, np.concatenate([np.empty(0, np.int32), *ids]), places)
        means: np.ndarray = sparse.csr_array(table, (len(ids), len(self.words_))) @ self.vectors_
        return means

    def _untrained(self, feed: PairFeed, seed: int) -> Engine:
        cbow = self.model == "cbow"
        rows = Embedding(feed.rows, self.width, mean=cbow, undivided=True, rate=self.rate, seed=seed)
        options = words.TUNED.get(self.readout, {}) | {"rate": self.rate, "seed": seed}
        readout = training.made(self.readout, feed.counts, self.width, batch=feed.batch, trunk=False, **options)
        return Engine(rows, None, readout, threads=training.threads(self.n_jobs), overlap=False, update="online")

    def _cut(self, X: Iterable[Document]) -> list[Sequence[str]]:
        """The documents as lists of words."""
        if isinstance(X, str | bytes) or not isinstance(X, Iterable):
            raise ValueError(f"X: found {type(X).__name__}, expected documents: strings, or lists of words")
        cut = TOKENS[check.choice("tokens", self.tokens, tuple(TOKENS))]
        strings = (document.lower() if self.lower and isinstance(document, str) else document for document in X)
        return [cut(document) if isinstance(document, str) else _listed(document) for document in strings]

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags


def _listed(document: Any) -> list[str]:
    """A document that is a list of words; ValueError for anything else."""
    words_ = list(document) if isinstance(document, Iterable) else [document]
    wrong = next((word for word in words_ if not isinstance(word, str)), None)
    if wrong is not None:
        raise ValueError(f"X: found a document with {wrong!r}, expected strings, or lists of words")
    return words_
