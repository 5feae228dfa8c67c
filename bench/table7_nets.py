"""The convolutional and recurrent networks of Table 7 in PyTorch, without their last linear layer; biases as published.

Each takes examples as rows of numbers, images by channels, and gives the last hidden layer: (sizes) -> module, width.
"""

from collections.abc import Callable
from typing import Any

Made = tuple[Any, int]


def alexnet_s(sizes: tuple[int, ...]) -> Made:
    """AlexNet in one tower, without local normalisation and dropout."""
    from torch import nn

    side = sizes[0]
    layers: list[Any] = [nn.Unflatten(1, (3, side, side)), nn.Conv2d(3, 96, 11, stride=4, padding=2), nn.ReLU()]
    layers += [nn.MaxPool2d(3, 2), nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    for inputs, outputs in ((256, 384), (384, 384), (384, 256)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    left = side
    for kernel, stride, padding in ((11, 4, 2), (3, 2, 0), (3, 2, 0), (3, 2, 0)):  # what makes the image smaller
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
    """Caffe's net for CIFAR-10, without local normalisation."""
    from torch import nn

    layers: list[Any] = [nn.Unflatten(1, (3, 32, 32)), nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2), nn.ReLU()]
    layers += [nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)]
    layers += [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2), nn.Flatten()]
    return nn.Sequential(*layers), 64 * 3 * 3


def resnet50(sizes: tuple[int, ...]) -> Made:
    """Bottlenecks of three convolutions, the stride in the middle one."""
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
    """Three stages of nine blocks of two convolutions; a shortcut that changes size has no weights: it is padded with 0."""
    from torch import nn

    class Padded(nn.Module):
        """Every second pixel, and as many channels of 0 again."""

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
    """Two layers as wide as the words' vectors; takes and gives (sequences, steps, width)."""
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
    """A convolution without bias, and its batch norm."""
    from torch import nn

    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(outputs)]


def _block(path: Any, shortcut: Any) -> Any:
    """relu(path(x) + shortcut(x))."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.path, self.shortcut = path, shortcut

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.path(x) + self.shortcut(x))

    return Block()
