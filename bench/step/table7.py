"""Table 7 of Shi et al. 2016 today: seconds per mini-batch of its networks, over threads and on a GPU, ours and PyTorch's.

The clock covers one whole step: forward, loss, backward and update, and the loss as a number. Data are in memory. Our engine
copies them, also to a GPU, where PyTorch's are on the device beforehand. Before timing, the first losses of all are compared,
those of dense nets with float64, and parameters are counted.

Ours is an engine. Dense nets are our MLP and full softmax. With momentum, which our readouts lack, the last layer is part of
the MLP and the loss is NumPy's. Other nets are `TorchTrunk` with our rows and full softmax, if there is no momentum. FCN-S with
a tree as its output layer is another model, with a work of its own and no published figure.
"""

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.harness import report
from bench.harness.measure import Work, append, measure, peer
from bench.oracles.tree import path
from cpu.tree.tree import huffman
from gpu.runtime.available import unavailable
from hybrid import MLP, SGD, Embedding, Engine, FullReadout, Pipeline, TreeReadout
from hybrid.backend import choose
from hybrid.engine.embedding import Inputs
from hybrid.feeds import Batch
from hybrid.readout.base import Base

# Networks as in their configurations, and random data: normal, except the pixels of FCN-R, classes and words.

BATCHES = 2  # distinct and alternating: learning from the first shows at its second visit
FIRST = 4  # losses compared before timing


class Row(NamedTuple):
    """A network.

    name        as published
    net         "dense", "tree" (its last layer is a tree), or one of NETS
    sizes       dense: all widths; images: their side and the number of classes; LSTM: its width and the number of words
    batch       examples, or sequences of `steps` steps
    rate, momentum, decay  of SGD
    parameters  expected number; None: small sizes
    """

    name: str
    net: str
    sizes: tuple[int, ...]
    batch: int
    rate: float
    momentum: float
    parameters: int | None
    decay: float = 0.0
    steps: int = 1

    @property
    def classes(self) -> int:
        return self.sizes[-1]

    @property
    def examples(self) -> int:
        """The number of targets of a batch."""
        return self.batch * self.steps

    @property
    def inputs(self) -> int:
        """The numbers of an example; for the LSTM those of a word's vector."""
        return 3 * self.sizes[0] ** 2 if self.net not in ("dense", "tree", "lstm") else self.sizes[0]


WIDE, TREE = (26_752, 2048, 2048, 2048, 26_752), "FCN-S with a tree"
FULL = (
    Row("FCN-S", "dense", WIDE, 64, 0.01, 0.0, 117_997_696),
    Row(TREE, "tree", WIDE, 64, 0.01, 0.0, 63_182_848 + 26_751 * 2048),
    Row("FCN-R", "dense", (784, 2048, 4096, 1024, 10), 1024, 0.05, 0.9, 14_205_962),
    Row("AlexNet-S", "alexnet_s", (224, 1000), 16, 0.01, 0.0, 62_378_344),
    # its published step updates nothing; this rate limits rounding errors, which its batch norms amplify
    Row("ResNet-50", "resnet50", (224, 1000), 16, 1e-5, 0.0, 25_557_032),
    Row("AlexNet-R", "alexnet_r", (32, 10), 1024, 0.01, 0.9, 85_098),
    Row("ResNet-56", "resnet56", (32, 10), 128, 0.01, 0.9, 853_018, decay=1e-4),
    # 6,180,624 as published, and PyTorch's second bias of each gate
    Row("LSTM", "lstm", (256, 10_000), 128, 0.1, 0.0, 6_180_624 + 2 * 4 * 256, steps=32),
)
ONLY = tuple(row.name for row in FULL)
SMALL = {  # sizes and batches for a functional test
    "FCN-S": ((300, 24, 24, 24, 300), 8),
    TREE: ((300, 24, 24, 24, 300), 8),
    "FCN-R": ((20, 16, 24, 12, 10), 16),
    "AlexNet-S": ((63, 20), 2),
    "ResNet-50": ((64, 20), 8),
    "AlexNet-R": ((32, 10), 8),
    "ResNet-56": ((32, 10), 8),
    "LSTM": ((16, 100), 4),
}


def rows(quick: bool) -> list[Row]:
    """Returns all networks; with `quick` small ones."""
    if not quick:
        return list(FULL)
    return [row._replace(sizes=SMALL[row.name][0], batch=SMALL[row.name][1], parameters=None) for row in FULL]


class Feed:
    """Batches of a row, which repeat, in an engine's form."""

    epochs, ticks_per_epoch = 1, 10**6

    def __init__(self, row: Row):
        rng = np.random.default_rng(0)
        self.batch, self.classes = row.examples, row.classes
        self.counts = np.ones(row.classes, np.int64)
        self.targets = rng.integers(0, row.classes, (BATCHES, row.examples)).astype(np.int32)
        words = row.net == "lstm"
        self.rows = row.classes if words else 0
        self.most_ids, self.width = (row.examples, 0) if words else (0, row.inputs)
        self.inputs = self._drawn(rng, row)
        self._batches = [
            Batch(given if words else None, None, target, x=None if words else given)
            for given, target in zip(self.inputs, self.targets, strict=True)
        ]

    def __len__(self) -> int:
        return self.ticks_per_epoch

    def __getitem__(self, tick: int) -> Batch:
        return self._batches[tick % BATCHES]

    def describe(self) -> dict[str, Any]:
        return {"kind": "drawn"}

    def _drawn(self, rng: np.random.Generator, row: Row) -> np.ndarray:
        """Draws (BATCHES, examples, width) float32, or (BATCHES, examples) int32 words."""
        if row.net == "lstm":
            return rng.integers(0, row.classes, (BATCHES, row.examples)).astype(np.int32)
        shape = (BATCHES, row.examples, row.inputs)
        return rng.random(shape, np.float32) if row.name == "FCN-R" else rng.standard_normal(shape, np.float32)


def first_weights(sizes: tuple[int, ...]) -> np.ndarray:
    """Draws a dense net's weights layer by layer: matrix (outputs, inputs), uniform within 1 / sqrt(inputs), biases 0."""
    rng, parts = np.random.default_rng(1), []
    for inputs, outputs in itertools.pairwise(sizes):
        matrix = rng.random(outputs * inputs, np.float32)
        matrix -= np.float32(0.5)
        matrix *= np.float32(2 / np.sqrt(inputs))
        parts += [matrix, np.zeros(outputs, np.float32)]
    return np.concatenate(parts)


def layers(sizes: tuple[int, ...], weights: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the matrix and bias of each layer, views of such weights."""
    found, at = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        end = at + outputs * inputs
        found.append((weights[at:end].reshape(outputs, inputs), weights[end : end + outputs]))
        at = end + outputs
    return found


def expected(row: Row, feed: Feed, weights: np.ndarray) -> list[float]:
    """Returns the first losses of a dense net in float64: logistic layers, softmax, SGD on the mean loss."""
    weights = weights.astype(float)
    parts = layers(row.sizes, weights)
    speeds = layers(row.sizes, np.zeros_like(weights)) if row.momentum else None
    losses, some = [], np.arange(row.batch)
    for tick in range(FIRST):
        values, target = [feed.inputs[tick % BATCHES].astype(float)], feed.targets[tick % BATCHES]
        for matrix, bias in parts:
            if values[1:]:
                values[-1] = 1 / (1 + np.exp(-values[-1]))
            values.append(values[-1] @ matrix.T + bias)
        delta = np.exp(values[-1] - values[-1].max(1, keepdims=True))
        delta /= delta.sum(1, keepdims=True)
        losses.append(float(-np.log(delta[some, target]).mean()))
        delta[some, target] -= 1
        delta /= row.batch
        for place in reversed(range(len(parts))):
            matrix, bias = parts[place]
            grads = delta.T @ values[place], delta.sum(0)
            if place:
                delta = delta @ matrix * values[place] * (1 - values[place])
            for number, (array, grad) in enumerate(zip((matrix, bias), grads, strict=True)):
                if speeds:
                    grad += row.momentum * speeds[place][number]
                    speeds[place][number][:] = grad
                array -= row.rate * grad
    return losses


Made = tuple[Any, int]


def alexnet_s(sizes: tuple[int, ...]) -> Made:
    """Builds AlexNet in one tower, without local normalisation and dropout."""
    from torch import nn

    side = sizes[0]
    layers: list[Any] = [nn.Unflatten(1, (3, side, side)), nn.Conv2d(3, 96, 11, stride=4, padding=2), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    for inputs, outputs in ((256, 384), (384, 384), (384, 256)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    left = side
    for kernel, stride, padding in ((11, 4, 2), (3, 2, 0), (3, 2, 0), (3, 2, 0)):  # these reduce the image
        left = (left + 2 * padding - kernel) // stride + 1
    layers += [
        nn.MaxPool2d(3, 2),
        nn.Flatten(),
        nn.Linear(256 * left**2, 4096),
        nn.ReLU(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
    ]
    return nn.Sequential(*layers), 4096


def alexnet_r(sizes: tuple[int, ...]) -> Made:
    """Builds Caffe's net for CIFAR-10, without local normalisation."""
    from torch import nn

    layers: list[Any] = [nn.Unflatten(1, (3, 32, 32)), nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2), nn.ReLU()]
    layers += [nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    layers += [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2), nn.Flatten()]
    return nn.Sequential(*layers), 64 * 3 * 3


def resnet50(sizes: tuple[int, ...]) -> Made:
    """Builds ResNet-50 from bottlenecks of three convolutions, the stride in the middle one."""
    from torch import nn

    side, width, layers = sizes[0], 64, list[Any]()
    layers += [nn.Unflatten(1, (3, side, side)), *_convolved(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            path = [*_convolved(width, inner, 1), nn.ReLU(), *_convolved(inner, inner, 3, stride), nn.ReLU()]
            path += _convolved(inner, 4 * inner, 1)
            shortcut = nn.Sequential(*_convolved(width, 4 * inner, 1, stride)) if not block else nn.Identity()
            layers.append(_block(nn.Sequential(*path), shortcut))
            width = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), width


def resnet56(sizes: tuple[int, ...]) -> Made:
    """Builds three stages of nine blocks of two convolutions; shortcuts that change size are zero-padded, without weights."""
    from torch import nn

    class Padded(nn.Module):
        """Takes every second pixel, and appends as many zero channels."""

        def forward(self, x: Any) -> Any:
            quarter = x.shape[1] // 2
            return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, quarter, quarter))

    width, layers = 16, list[Any]()
    layers += [nn.Unflatten(1, (3, 32, 32)), *_convolved(3, 16, 3), nn.ReLU()]
    for stage in range(3):
        outputs = 16 << stage
        for _ in range(9):
            grows = outputs != width
            path = [*_convolved(width, outputs, 3, 1 + grows), nn.ReLU(), *_convolved(outputs, outputs, 3)]
            layers.append(_block(nn.Sequential(*path), Padded() if grows else nn.Identity()))
            width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), width


def lstm(sizes: tuple[int, ...]) -> Made:
    """Builds two layers as wide as the words' vectors; maps (sequences, steps, width) to the same shape."""
    from torch import nn

    class Lstm(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.lstm(x)[0]

    return Lstm(sizes[0]), sizes[0]


NETS: dict[str, Callable[[tuple[int, ...]], Made]] = {
    made.__name__: made for made in (alexnet_s, alexnet_r, resnet50, resnet56, lstm)
}


def _convolved(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[Any]:
    """Returns a convolution without bias, and its batch norm."""
    from torch import nn

    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


def _block(path: Any, shortcut: Any) -> Any:
    """Builds relu(path(x) + shortcut(x))."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.path, self.shortcut = path, shortcut

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.path(x) + self.shortcut(x))

    return Block()


CUDA = "cuda:0"


class Place(NamedTuple):
    """The place of a step: device is "cpu" or CUDA, name is used in records."""

    threads: int
    device: str
    name: str


class Rival(NamedTuple):
    """A rival: step() learns from the next batch and returns its loss."""

    who: str
    step: Callable[[], float]
    parameters: int


def run(arguments) -> None:
    """Prints one table per network, at 1, 2, 4, ... threads, then on a GPU if present."""
    chosen = [row for row in rows(arguments.quick) if not arguments.only or row.name in arguments.only]
    for row in chosen:
        task, records = Task(row), []
        for place in places(arguments.threads):
            works = list(_works(task, place))
            if works:
                records += measure(works, arguments.repeat)
            del works
            gc.collect()  # frees memory for the next
        append(arguments.json, records)
        if records:
            print("", report.tables(records), sep="\n", flush=True)


def places(threads: int) -> list[Place]:
    """Returns 1, 2, 4, ... threads and all of them; then a GPU that ours or PyTorch can use."""
    counts = sorted({1 << power for power in range(threads.bit_length())} | {threads})
    found = [Place(count, "cpu", "cpu") for count in counts]
    if name := _gpu():
        found.append(Place(threads, CUDA, name))
    return found


class Task:
    """A network, its data, and the losses expected of every rival."""

    def __init__(self, row: Row):
        self.row, self.feed = row, Feed(row)
        self.weights = first_weights(row.sizes) if row.net in ("dense", "tree") else None
        self.losses = expected(row, self.feed, self.weights) if row.net == "dense" and self.weights is not None else []
        self.parameters = row.parameters

    def work(self, rival: Rival, place: Place) -> Work:
        """Returns a work whose turn is one step; the first losses are compared."""
        row, losses = self.row, list[float]()

        def step() -> None:
            losses.append(rival.step())

        def check() -> None:
            while len(losses) < FIRST:
                step()
            self.check(rival, losses[:FIRST])

        params = {"net": row.name, "batch": row.batch, "parameters": rival.parameters}
        work = "table7.tree" if row.net == "tree" else "table7.step"
        return Work(work, rival.who, params, 1, "mini-batches/s", step, check, threads=place.threads, device=place.name)

    def check(self, rival: Rival, losses: list[float]) -> None:
        """Raises AssertionError for another number of parameters, or losses that differ from the others'.

        The tolerance is a hundredth of the change of the first batch's loss until its second visit.
        """
        self.parameters = self.parameters or rival.parameters
        if rival.parameters != self.parameters:
            raise AssertionError(f"{rival.who}: {rival.parameters} parameters, expected {self.parameters}")
        if self.row.net == "tree":
            self._check_tree(losses)
        self.losses = self.losses or losses
        changed = abs(self.losses[BATCHES] - self.losses[0])
        np.testing.assert_allclose(losses, self.losses, rtol=1e-6, atol=0.01 * changed)

    def _check_tree(self, losses: list[float]) -> None:
        """Checks that the first loss is log 2 per path node, since nodes start at 0, and that the same batch's loss falls.
        The tolerance covers earlier updates within the batch."""
        tree = huffman(self.feed.counts)
        length = float(np.mean([len(path(tree, leaf)) for leaf in self.feed.targets[0]]))
        np.testing.assert_allclose(losses[0], length * np.log(2), rtol=1e-3)
        if not losses[BATCHES] < losses[0]:
            raise AssertionError(f"the loss of one batch does not fall: {losses}")


def _works(task: Task, place: Place) -> Iterator[Work]:
    """Yields the rivals of a place. For PyTorch's nets its own loop comes first: ours is compared with its losses."""
    row, on_gpu = task.row, place.device == CUDA
    torch = peer("torch")
    beside = torch and row.net != "tree" and (not on_gpu or torch.cuda.is_available())
    if row.net in NETS:
        if beside:
            yield task.work(_torch(task, place), place)
            yield task.work(_trunk_of_torch(task, place), place)
        return
    if not on_gpu or unavailable() is None:
        yield task.work(_dense(task, place), place)
    if beside:
        yield task.work(_torch(task, place), place)


# Ours


def _dense(task: Task, place: Place) -> Rival:
    """Returns an MLP and a full softmax, or a tree; with momentum the MLP is the whole net."""
    row, weights = task.row, task.weights
    assert weights is not None
    trunk = MLP(
        row.sizes if row.momentum else row.sizes[:-1],
        ("logistic", "linear" if row.momentum else "logistic"),
        optimiser=SGD(row.rate, momentum=row.momentum),
    )
    trunk.weights[:] = weights[: trunk.weights.size]
    if row.net == "tree":
        readout: Any = TreeReadout(
            task.feed.counts, row.sizes[-2], batch=row.batch, optimiser=SGD(row.rate / row.batch)
        )
    else:
        readout = _readout(row, row.sizes[-2], layers(row.sizes, weights)[-1][0], place)
    return _engine(task, Inputs(row.inputs), trunk, readout, place, trunk.weights.size)


def _trunk_of_torch(task: Task, place: Place) -> Rival:
    """Returns the module of PyTorch's loop, under an engine."""
    import torch

    from hybrid import TorchTrunk

    row = task.row
    body, head = _net(row)
    outputs, whole = (row.classes, torch.nn.Sequential(body, head)) if row.momentum else (head.in_features, body)
    sequence = row.steps if row.net == "lstm" else None
    trunk = TorchTrunk(whole, row.inputs, outputs, optimiser=lambda given: _sgd(row, given), sequence=sequence)
    readout = _readout(row, outputs, head.weight.detach().numpy(), place)
    rows = _rows(row) if row.net == "lstm" else Inputs(row.inputs)
    own = sum(parameter.numel() for parameter in whole.parameters()) + (
        row.classes * row.inputs if row.net == "lstm" else 0
    )
    return _engine(task, rows, trunk, readout, place, own)


def _readout(row: Row, width: int, matrix: np.ndarray, place: Place) -> Any:
    """Returns the last layer and its loss; the loss alone if SGD has momentum."""
    if row.momentum:
        return Logits(row.classes, batch=row.examples)
    backend = choose(CUDA) if place.device == CUDA and row.net == "dense" else None
    rate = row.rate / row.examples  # learning rate for the loss summed over a batch
    readout = FullReadout(row.classes, width, batch=row.examples, biases=True, backend=backend, optimiser=SGD(rate))
    readout.begin_with(matrix)
    return readout


def _rows(row: Row) -> Embedding:
    """Returns the words' vectors."""
    return Embedding(row.classes, row.inputs, spread=0.1, optimiser=SGD(row.rate / row.examples))


def _engine(task: Task, below: Any, trunk: Any, readout: Any, place: Place, parameters: int) -> Rival:
    device = None if place.device == "cpu" else place.device
    engine = Engine(
        below,
        trunk,
        readout,
        device=device,
        threads=place.threads,
        schedule="constant",
        pipeline=Pipeline(overlap=False),
    )
    ticks = engine.run(task.feed)
    parameters += sum(
        array.size for name, array in readout.parameters().items() if name != "counts"
    )  # of a tree's classes
    return Rival("ours", lambda: next(ticks).loss, parameters)


# PyTorch


def _torch(task: Task, place: Place) -> Rival:
    """Returns a plain PyTorch loop."""
    import torch

    row, device = task.row, place.device
    if task.weights is not None:
        module = _dense_module(row, task.weights)
    else:
        body, head = _net(row)
        parts = [body, head]
        if row.net == "lstm":  # the words' vectors start as ours do
            table = torch.from_numpy(_rows(row).table.copy())
            parts.insert(0, torch.nn.Embedding.from_pretrained(table, freeze=False))
        module = torch.nn.Sequential(*parts)
    module.to(device)
    moves = _sgd(row, module.parameters())
    inputs = [torch.from_numpy(given).to(device) for given in task.feed.inputs]
    if row.net == "lstm":
        inputs = [given.long().view(row.batch, row.steps) for given in inputs]
    targets = [torch.from_numpy(given).long().to(device) for given in task.feed.targets]
    made = 0

    def step() -> float:
        nonlocal made
        torch.set_num_threads(place.threads)  # an engine in the same process sets it too
        batch, made = made % BATCHES, made + 1
        moves.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(inputs[batch]).reshape(-1, row.classes), targets[batch])
        loss.backward()
        moves.step()
        return loss.item()

    return Rival(f"torch {torch.__version__}", step, sum(parameter.numel() for parameter in module.parameters()))


def _dense_module(row: Row, weights: np.ndarray) -> Any:
    import torch

    made: list[Any] = []
    for matrix, bias in layers(row.sizes, weights):
        made += [torch.nn.utils.skip_init(torch.nn.Linear, matrix.shape[1], matrix.shape[0]), torch.nn.Sigmoid()]
        with torch.no_grad():
            made[-2].weight.copy_(torch.from_numpy(matrix))
            made[-2].bias.copy_(torch.from_numpy(bias))
    return torch.nn.Sequential(*made[:-1])


def _net(row: Row) -> tuple[Any, Any]:
    """Builds a net without its last layer, and that layer: deterministic, with biases of the last layer 0."""
    import torch

    torch.manual_seed(0)
    body, width = NETS[row.net](row.sizes)
    head = torch.nn.Linear(width, row.classes)
    torch.nn.init.zeros_(head.bias)
    return body, head


def _sgd(row: Row, parameters: Any) -> Any:
    import torch

    return torch.optim.SGD(parameters, lr=row.rate, momentum=row.momentum, weight_decay=row.decay, fused=True)


# The GPU


def _gpu() -> str | None:
    """Returns the name of a GPU that ours or PyTorch can use."""
    if unavailable() is None:
        import pycuda.driver

        return pycuda.driver.Device(0).name()
    torch = peer("torch")
    return torch.cuda.get_device_name(0) if torch and torch.cuda.is_available() else None


class Logits(Base):
    """The loss alone, if the whole net with its last layer is one trunk, updated with momentum, which readouts lack."""

    kind = "logits"

    def __init__(self, classes: int, *, batch: int):
        super().__init__(classes, classes, batch=batch, optimiser=SGD(0.0))

    def learn(self, grad: np.ndarray, loss: np.ndarray, hidden: np.ndarray, target: np.ndarray) -> None:
        """Writes the loss of each example, and its gradient with respect to the logits."""
        rows = np.arange(len(hidden))
        np.subtract(hidden, hidden.max(axis=1, keepdims=True), out=grad)
        loss[:] = -grad[rows, target]
        np.exp(grad, out=grad)
        sums = grad.sum(axis=1, keepdims=True)
        loss += np.log(sums[:, 0])
        grad /= sums
        grad[rows, target] -= 1

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns no parameters."""
        return {}

    def _pairs(self) -> list:
        return []
