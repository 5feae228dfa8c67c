"""The old name of hybrid.engine.trunk.mlp, which pickles and programs of before know."""

from .engine.trunk.mlp import Trunk as Trunk
from .engine.trunk.mlp import _again as _again
