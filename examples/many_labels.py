"""Label texts, each with any number of labels: a label tree beside one logistic regression a label.

Texts are a file as fastText reads it (`__label__soup __label__rice how long ...`) or, by default, made: every label has words
of its own, and a text those of its labels. Both models see the same TF-IDF numbers. You see how many of the first one, three
and five labels are right in unseen texts, and the seconds that learning took. One regression a label costs as much as there
are labels; the tree costs what lies on the way to those of the text.

    python examples/many_labels.py --texts cooking.train
"""

import argparse
import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from hybrid import formats
from hybrid.sklearn import SparseLabelTreeClassifier

KS = (1, 3, 5)


def made(texts: int, labels: int, seed=0) -> tuple[list[str], list[list[str]]]:
    """Texts of three words for each of their labels, frequent labels more often, and five words of anything."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, labels + 1)
    chosen = [rng.choice(labels, rng.integers(1, 5), replace=False, p=share / share.sum()) for _ in range(texts)]
    own = [[f"word{7 * label + rng.integers(0, 10)}" for label in row for _ in range(3)] for row in chosen]
    noise = [[f"word{word}" for word in rng.integers(0, 7 * labels, 5)] for _ in range(texts)]
    return [" ".join(row + more) for row, more in zip(own, noise, strict=True)], [
        [f"label {label}" for label in row] for row in chosen
    ]


def precision(scores: np.ndarray, truth: np.ndarray) -> list[float]:
    """How many of the first k labels are right, for each k."""
    order = np.argsort(-scores, axis=1)
    right = np.take_along_axis(truth, order[:, : max(KS)], axis=1)
    return [right[:, :k].mean() for k in KS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", help="a file of texts with labels (default: made)")
    parser.add_argument("--labels", type=int, default=200, help="of the texts that are made")
    parser.add_argument("--number", type=int, default=4000, help="of texts that are made")
    arguments = parser.parse_args()

    path = arguments.texts
    texts, labels = formats.fasttext.load(path) if path else made(arguments.number, arguments.labels)
    y = MultiLabelBinarizer(sparse_output=True).fit_transform(labels)
    X_train, X_test, y_train, y_test = train_test_split(texts, y, random_state=0)
    met = np.asarray(y_train.sum(axis=0)).ravel() > 0  # a regression needs an example of its label
    y_train, y_test = y_train[:, met], y_test[:, met]
    models = {
        "label tree": SparseLabelTreeClassifier(random_state=0, n_jobs=-1),
        "one against the rest": OneVsRestClassifier(LogisticRegression(), n_jobs=-1),
    }
    print(f"{len(texts):,} texts, {y.shape[1]:,} labels, {y.sum() / len(texts):.1f} a text\n")
    print(f"{'':20}  {'   '.join(f'first {k}' for k in KS)}   seconds")
    for name, model in models.items():
        pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True), model)
        began = time.perf_counter()
        pipeline.fit(X_train, y_train)
        seconds = time.perf_counter() - began
        figures = precision(pipeline.predict_proba(X_test), y_test.toarray())
        print(f"{name:20}  {'   '.join(f'{figure:7.1%}' for figure in figures)}  {seconds:8.1f}")


if __name__ == "__main__":
    main()
