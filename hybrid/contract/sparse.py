"""What a backend promises of what learns sparsely: rows, readouts; see hybrid/contract/__init__.py."""

from typing import Any, NamedTuple, Protocol

from numpy.typing import DTypeLike

from .array import Array


class Learned(NamedTuple):
    """Rows that learn, and what is kept for each of them. Where all but `rows` is None they learn by plain SGD.

    rows          (R, D)
    biases        (R,): a number that is added to the product of its row and a hidden vector; None: there are none
    squares       None: SGD. (R,): row-wise Adagrad, one number a row, the sum of the mean squares of its gradients, its
                  bias among the D + 1 numbers. (R, D): Adagrad, the sum of the squares of each number's gradients
    bias_squares  (R,): the same of the biases, where squares is (R, D) and there are biases; None elsewhere

    A visit moves a row w against its gradient g, and its bias by the gradient of that, which belongs to g: by SGD w <- w - rate
    g; by Adagrad s <- s + g^2, w <- w - rate g / (sqrt(s) + 1e-10), where row-wise Adagrad takes the mean of g^2 over the row.
    A visit is: an occurrence of an id, in a scatter; an example at a node of a tree or at a drawn class, or a group of them in
    the mode "grouped" and in TreeBatch; in full and sampled softmax and in the top of a split tree the sum over the batch, at
    every row that takes part. What a kernel passes on, the gradient of hidden vectors, is that of the rows before the visit.

    Duchi et al. 2011, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization"; row by row: Mudigere et
    al. 2022, arXiv:2104.05158.
    """

    rows: Any
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


class Rows(Protocol):
    """Tables of vectors, one row an id; table (R, D)."""

    def gather(self, out: Array, table: Array, ids: Array) -> None:
        """out[n] = table[ids[n]]; out (N, D), ids (N,)."""

    def scatter(self, learned: Learned, ids: Array, grad: Array, rate: float) -> None:
        """Move row ids[n] against grad[n] (N, D), in the order of n: the same bits at any number of threads. No biases."""

    def gather_mean(self, out: Array, table: Array, bag_at: Array, ids: Array, values: Array | None) -> None:
        """out[b] = mean of table[ids[bag_at[b]:bag_at[b+1]]], zero for an empty bag; out (B, D), bag_at (B+1,) int64.

        values  (N,): out[b] is the sum of values[n] * table[ids[n]] over the bag instead; None: the mean
        """

    def scatter_mean(
        self, learned: Learned, bag_at: Array, ids: Array, values: Array | None, grad: Array, rate: float
    ) -> None:
        """The reverse of gather_mean: every row of bag b moves against grad[b] / size(b), in the order of b.

        values  (N,): against values[n] * grad[b] instead; None: of means
        """


class Softmax(Protocol):
    """The full softmax over V classes, computed in chunks: its scratch has a bound. Rows (V, D), hidden (B, D)."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; every row moves against the gradient summed over B.

        weight  (B,): multiplies an example's loss and gradients; None: all 1
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b])."""

    def best(self, ids: Array, log_probs: Array, learned: Learned, work: Any, hidden: Array) -> None:
        """Write the k most likely classes of each row, most likely first; ids and log_probs (B, k)."""


class SampledSoftmax(Protocol):
    """The softmax over the target of each row and negatives that the whole batch shares; rows (V, D), hidden (B, D)."""

    def log_uniform(self, classes: int) -> Any:
        """A sampler that draws approximately by Zipf's law; classes are numbered by falling frequency."""

    def unigram(self, counts: Array) -> Any:
        """A sampler that draws class v in proportion to counts[v]^0.75."""

    def uniform(self, classes: int) -> Any:
        """A sampler that draws all classes alike."""

    def workspace(self, batch: int, width: int, negatives: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and `negatives` negatives need; made once."""

    def draw(self, work: Any, sampler: Any, count: int, target: Array, seed: int, tick: int) -> int:
        """Write the distinct negatives of a batch to the scratch, with log of the probability that a class is among them.

        count draws with replacement, a function of seed and tick. Returns how many negatives there are: up to count.
        """

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> Array:  # fmt: skip
        """What `step` does with `count` negatives that were drawn before."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, sampler: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float, seed: int, tick: int,
    ) -> Array:  # fmt: skip
        """Write grad (B, D) = d loss / d hidden and loss (B,) in nats; rows move against the gradient summed over B.

        weight as in Softmax.step. The draws are a function of seed and tick. Returns the negatives: distinct class ids, valid
        until the next step.
        """


class SampledLogistic(Protocol):
    """A logistic regression a class, for the target of each row and the negatives that the whole batch shares."""

    def calibrated(self, draws: int, classes: int, calibration: float) -> float:
        """The factor of the target's part of the loss, beta of gBCE, after uniform draws; calibration: t from 0 to 1."""

    def learn(
        self, grad: Array, loss: Array, learned: Learned, work: Any, count: int, hidden: Array, target: Array,
        weight: Array | None, rate: float, positive: float,
    ) -> Array:  # fmt: skip
        """As SampledSoftmax.learn: loss = -positive log p(yes | target) - sum of log p(no | negative)."""


class TreeSoftmax(Protocol):
    """Hierarchical softmax: nodes (V - 1, D), one logistic regression a node of a binary tree over V classes."""

    def plan(self, tree: Any) -> Any:
        """The tree in the form that the other functions take; made once."""

    def workspace(self, batch: int, width: int, depth: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and paths up to `depth` need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

        A node moves for the rows of the batch in order, one after another, so the result equals the serial loop over rows,
        bit for bit, at any number of threads.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, tree: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(target[b] | hidden[b]); sums to 1 over all classes."""


class TreeBatch(Protocol):
    """The same tree, whose nodes learn from a few examples at once: no node waits for one example after another.

    `TreeSoftmax.log_prob` takes its plans too.
    """

    def plan(self, tree: Any) -> Any:
        """The tree in the form that `step` takes; made once."""

    def workspace(self, batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows and paths up to `depth` need; made once for a `together`."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float, together: int,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

        At each node the examples that pass it learn in the order of the batch, up to `together` at a time, all from the node
        before any of them moves it; then it moves once against the sum of their gradients. together 1: the semantics of the
        serial loop; B: those of a mini-batch. The same bits in every run, at any number of threads.
        grad is summed over the path, not averaged over B. weight as in Softmax.step.
        """


class Split(Protocol):
    """The top of a tree over V classes, computed by dense products: nodes (K, D), the first K in breadth-first order."""

    def workspace(self, batch: int, width: int, top: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows of `width` numbers and `top` nodes need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move nodes (K, D).

        tree: TreeSoftmax.plan of the tree's top. All examples use the nodes before the step, and a node moves once, against
        the gradient summed over its examples: the semantics of a mini-batch, not of the serial loop. weight as in Softmax.step.
        """


class Head(Protocol):
    """A full softmax over S slots, each of a class alone or of a cluster of classes; rows (S, D), slot (V,) int32."""

    def workspace(self, batch: int, width: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` rows need; made once."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array,
        weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: add d loss / d hidden to grad (B, D), write loss (B,) in nats, move the rows of the slots.

        target (B,) int32 classes. Every row moves once, against the gradient summed over B. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, work: Any, slot: Array, hidden: Array, target: Array) -> None:
        """out[b] = log p(the slot of target[b] | hidden[b])."""

    def add(self, out: Array, part: Array) -> None:
        """out += part; of one shape."""


class LabelTree(Protocol):
    """A probabilistic label tree over V labels, of which an example may have any number: rows (N, D), one a node.

    tree  up (N,) int32, child_at (N + 1,) int32, leaf (V,) int32, label (N,) int32, visits (V,) int32, see
          cpu/label_tree.py
    """

    def longest(self, tree: Any, target: Array, target_at: Array) -> int:
        """At least as many nodes as an example of a batch visits: the length that `workspace` is to have room for."""

    def workspace(self, batch: int, width: int, length: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that calls with up to `batch` examples need, which visit up to `length` nodes each."""

    def step(
        self, grad: Array, loss: Array, learned: Learned, work: Any, tree: Any, hidden: Array, target: Array,
        target_at: Array, weight: Array | None, rate: float,
    ) -> None:  # fmt: skip
        """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes' rows.

        Example b has the labels target[target_at[b] : target_at[b + 1]]; one that stands there twice counts once. It visits
        the root, and the children of every node that has one of its labels below; loss is the sum of -log p over them. Rows
        move as in TreeSoftmax.step. weight as in Softmax.step.
        """

    def log_prob(self, out: Array, learned: Learned, tree: Any, hidden: Array, target: Array) -> None:
        """out[b] = log p(example b has the label target[b]): the labels' probabilities do not sum to 1."""
