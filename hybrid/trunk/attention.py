"""A trunk of causal self-attention over the last items or words, as SASRec has it, computed by PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import check
from ..settings import number, option
from .torch import TorchTrunk, drawing

NAMES = ("width", "length", "every", "blocks", "heads", "dropout", "rate", "decay")


@dataclass(frozen=True)
class Options:
    """What the command line takes for it."""

    dropout: float = option(0.2, "share of the trunk's activations that is set to 0", group="training", type=number)
    trunk_rate: float = option(0.001, "learning rate of AdamW", group="training", type=number)


class AttentionTrunk(TorchTrunk):
    """Learned places -> dropout -> blocks of causal self-attention -> layer norm; a linear map where `outputs` is not `width`.

    width    numbers of the vector of an item
    outputs  numbers of a hidden vector; None: width
    length   T, most items that are seen
    every    True: T examples are a sequence, as of a SequenceFeed of that length, and each place gives a hidden vector. False:
             an example is T vectors side by side, as of a HistoryFeed(order="concatenated"), and the last place gives it
    blocks   how many: norm -> attention -> +, norm -> linear -> ReLU -> linear -> +
    heads    of a block, which share the width
    dropout  the share of activations that learning sets to 0, also behind the places and among what attention looks at
    rate, decay  of AdamW, with betas 0.9 and 0.98
    clip, threads, seed  see TorchTrunk; the seed draws the weights too

    A checkpoint keeps all of it. Raises ValueError for sizes below 1, a width that the heads cannot share, and a dropout
    outside [0, 1).

    Kang and McAuley 2018, "Self-Attentive Sequential Recommendation", arXiv:1808.09781.
    """

    kind = "attention"

    def __init__(
        self,
        width: int,
        outputs: int | None = None,
        *,
        length: int,
        every: bool = True,
        blocks: int = 2,
        heads: int = 1,
        dropout: float = 0.2,
        rate: float = 0.001,
        decay: float = 0.0,
        clip: float | None = None,
        threads: int | None = None,
        seed: int = 0,
    ):
        import torch

        from ._attention import Attention

        for name, value in (("width", width), ("length", length), ("blocks", blocks), ("heads", heads)):
            check.whole(name, value, 1)
        if width % heads:
            raise ValueError(f"heads: found {heads}, expected a divisor of {width}, the width that they share")
        if check.number("dropout", dropout, 0) >= 1:
            raise ValueError(f"dropout: found {dropout}, expected a share of at least 0 and less than 1")
        self.width, self.length, self.every, self.blocks, self.heads = width, length, bool(every), blocks, heads
        self.dropout, self.rate, self.decay = dropout, check.number("rate", rate, 0), check.number("decay", decay, 0)
        seed, outputs = check.whole("seed", seed, 0), width if outputs is None else check.whole("outputs", outputs, 1)
        with drawing([torch.default_generator], (seed,)):
            net = Attention(width, outputs, length=length, every=every, blocks=blocks, heads=heads, dropout=dropout)
        adam = torch.optim.AdamW(net.parameters(), lr=self.rate, betas=(0.9, 0.98), weight_decay=self.decay)
        inputs, sequence = (width, length) if every else (length * width, None)
        super().__init__(net, inputs, outputs, optimiser=adam, clip=clip, sequence=sequence, threads=threads, seed=seed)

    def describe(self) -> dict[str, Any]:
        """The arguments, and what its optimiser keeps."""
        own = {name: getattr(self, name) for name in (*NAMES, "outputs", "clip", "seed")}
        return {"kind": self.kind} | own | {"state": self._state.facts()}


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> AttentionTrunk:
    """From options of the command line; see hybrid/trunk/__init__.py. Rows side by side are taken as so many places."""
    every = options.get("order") == "sequence"
    length = options["history"] if every else inputs // options["width"]
    if length < 2:
        raise ValueError(
            f"--trunk attention: found examples of {length} row, expected several: --order sequence or concatenated with "
            "--history of at least 2, or --context"
        )
    own = {"dropout": options["dropout"], "rate": options["trunk_rate"]}
    return AttentionTrunk(options["width"], outputs, length=length, every=every, seed=seed, **own)


def rebuild(state: dict[str, Any], **facts: Any) -> AttentionTrunk:
    """From describe(): with room for what the optimiser keeps."""
    made = AttentionTrunk(**facts)
    made._state.expect(state)
    return made
