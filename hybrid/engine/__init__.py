"""A model under training: input rows, a trunk and a readout, and the queues on which their stages run."""

from .embedding import Embedding as Embedding
from .embedding import Inputs as Inputs
from .engine import Engine as Engine
