"""Layers of an MLP of any depth, and how their weights move."""

from typing import Any, NamedTuple, Protocol

from numpy.typing import DTypeLike

from .array import Array


class Layer(NamedTuple):
    """A layer of an MLP: linear -> norm -> activation -> dropout -> + input. Those that it does not have are left out.

    inputs, outputs  sizes; equal where residual
    at               where its numbers begin in the weights: matrix (outputs, inputs) | bias | gain | shift (outputs,)
    bias             whether the linear map has one
    norm             layer norm over the outputs, with gain and shift (Ba et al. 2016, arXiv:1607.06450)
    residual         the input is added at the end
    activation       one of those of Units, "gelu" or "linear"
    dropout          the share of activations that learning sets to 0; others are divided by 1 - dropout
    """

    inputs: int
    outputs: int
    at: int
    bias: bool
    norm: bool
    residual: bool
    activation: str
    dropout: float

    @property
    def kept(self) -> bool:
        """Whether what is before the activation must be kept for the way back, because `out` does not tell it."""
        return self.norm or self.residual or self.activation == "gelu"


class Passed(NamedTuple):
    """What a layer writes on its way forward, and reads on the way back.

    out     (B, outputs)
    before  (B, outputs): before the activation; of a layer with a norm, what gain and shift have not met yet. None unless
            `Layer.kept`
    spread  (B, 1): 1 / root of (variance + 1e-5). None without a norm
    """

    out: Array
    before: Array | None
    spread: Array | None


class Mlp(Protocol):
    """Layers of an MLP. weights is flat, x (B, inputs).

    key: a draw of dropout masks, a whole number from 0 to 2^63 - 1; None: nothing is dropped. The activation at place p of
    (B, outputs) is dropped where SplitMix64 (cpu/vectors/splitmix.py), begun at `key`, gives as its p-th number one below
    dropout: the same on all backends, and no memory.
    Tolerance against a float64 oracle: that of Units; a norm multiplies it by 1 / the spread.
    """

    def workspace(self, widest: int, dtype: DTypeLike) -> Any:
        """The scratch arrays that `backward` of layers with up to so many outputs needs; made once."""

    def forward(self, passed: Passed, layer: Layer, weights: Array, x: Array, key: int | None) -> None:
        """Write the arrays of `passed`."""

    def backward(
        self, x_grad: Array | None, weight_grad: Array, out_grad: Array, work: Any, layer: Layer, weights: Array,
        passed: Passed, x: Array, key: int | None,
    ) -> None:  # fmt: skip
        """Write x_grad (None: not wanted); add the sum over the batch to weight_grad, laid out like the weights.

        out_grad (B, outputs) comes in as d loss / d out; it leaves as the gradient of what the matrix gave.
        """


class Move(NamedTuple):
    """How far weights move.

    rate   learning rate
    scale  what the gradient is multiplied by first: 1 / examples, where it is a sum and the mean is meant
    decay  weight decay
    cut    the workspace that `Optimiser.clip` wrote; None: the gradient is not clipped
    """

    rate: float
    scale: float
    decay: float
    cut: Any


class Optimiser(Protocol):
    """How dense weights move: one pass over weights, state and gradient, which it clears; nothing waits for the device.

    g is the gradient after `scale` and `cut`, and, but for decoupled decay, plus decay * weights. Formulas and what is beside
    roots are PyTorch's. All arrays are flat and equally long, a state is 0 at first.
    """

    def workspace(self, size: int) -> Any:
        """The scratch arrays that `clip` of so many numbers needs; made once."""

    def clip(self, work: Any, grad: Array, scale: float, most: float) -> None:
        """Write to the workspace by what to multiply, so that the norm of scale * grad is at most about `most`.

        It is min(1, most / (norm + 1e-6)); sums have a fixed partition.
        """

    def merge(self, grad: Array, part: Array) -> None:
        """grad <- grad + part; part <- 0: a step of the sum over micro-batches, see hybrid/trunk/_stages.py."""

    def sgd(
        self, weights: Array, velocity: Array | None, grad: Array, move: Move, momentum: float, nesterov: bool
    ) -> None:
        """velocity <- momentum velocity - rate g; weights <- weights + velocity; velocity None: plain SGD.

        nesterov: weights <- weights + momentum velocity - rate g instead. The velocity holds rates of the past, where
        PyTorch's holds gradients: the same while the rate is. Without decay and cut the bytes are those of Units.update.
        """

    def adagrad(self, weights: Array, squares: Array, grad: Array, move: Move) -> None:
        """squares <- squares + g^2; weights <- weights - rate g / (root of squares + 1e-10) (Duchi et al. 2011)."""

    def adam(
        self, weights: Array, mean: Array, squares: Array, grad: Array, move: Move, betas: tuple[float, float],
        updates: int, decoupled: bool,
    ) -> None:  # fmt: skip
        """mean and squares follow g and g^2 by betas; weights <- weights - rate m / (root of s + 1e-8).

        m and s are mean and squares / (1 - beta^updates), updates being 1 the first time (Kingma and Ba 2015,
        arXiv:1412.6980). decoupled: first weights <- weights (1 - rate decay), and g has no decay (Loshchilov and Hutter
        2019, arXiv:1711.05101).
        """
