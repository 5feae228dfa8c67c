"""The engine as scikit-learn estimators: in pipelines, grid searches and pickles, with scikit-learn's names for all options.

Every estimator is a thin layer over an Engine, stored as `engine_` by `fit`. Importing this package needs scikit-learn
(ImportError, with the remedy); `import hybrid` does not import it.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as missing:
    raise ImportError('hybrid.sklearn: scikit-learn is missing; pip install "hybrid-engine[sklearn]"') from missing

from .label_trees import SparseLabelTreeClassifier
from .next_item import NextItem
from .tree_classifier import TreeClassifier

__all__ = ["NextItem", "SparseLabelTreeClassifier", "TreeClassifier"]
