"""What `python -m bench quality` compares: contenders at a problem, each of which can be trained for so many epochs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.draws import Space
from hybrid.train.job import Watched

Figures = dict[str, float]


class Run(NamedTuple):
    """One training that is over.

    valid, test  measure the model when they are called, off the clock; no figures where it diverged
    epochs       passes over the data, also a part of one
    seconds      of training alone
    examples     learned from
    parameters   numbers that are learned
    memory       bytes that the process took at its peak beyond what it had before; None where the system does not say
    """

    valid: Callable[[], Figures]
    test: Callable[[], Figures]
    epochs: float
    seconds: float
    examples: int
    parameters: int
    memory: int | None = None


Train = Callable[[Mapping[str, Any], int, float], Run]


class Contender(NamedTuple):
    """One that learns.

    train  (settings, seed, epochs) -> Run; its schedule ends where the epochs do, which may be a part of one
    space  what a search draws of its settings; {}: nothing is searched
    first  settings that are tried before any are drawn: the defaults of the time; all of them where nothing is searched
    once   it is trained once, on one pass: there is nothing random in it, and more time is no use to it
    small  train on the smaller data of a search; None: as `train`
    """

    train: Train
    space: Space
    first: Mapping[str, Any]
    once: bool = False
    small: Train | None = None


class Problem(NamedTuple):
    """Data, what is asked of a model of them, and who contends.

    data        what is learned from and measured on, in words
    judged      the figure of validation data that decides, and whether less of it is better
    contenders  by the name that tables show
    epochs      lengths at which all are compared; a search trains for the last
    seconds     other lengths
    seeds       of every comparison
    small       what a search learns from where that is less, in words
    """

    data: str
    judged: Watched
    contenders: Mapping[str, Contender]
    epochs: Sequence[float]
    seconds: Sequence[float] = (60, 120, 240, 480)
    seeds: Sequence[int] = (0, 1, 2)
    small: str | None = None
