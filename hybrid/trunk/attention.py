"""A trunk of causal self-attention over the last items or words, as in SASRec, computed by PyTorch."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import check, optimisers
from ..optimisers import AdamW
from ..settings import number, option
from .torch import TorchTrunk, drawing, pytorch

RATE, BETAS = 0.001, (0.9, 0.98)


@dataclass(frozen=True)
class Options:
    """The command-line options of this trunk."""

    dropout: float = option(0.2, "dropout rate of the trunk", group="training", type=number)
    trunk_rate: float = option(0.001, "learning rate of AdamW", group="training", type=number)


@dataclass(frozen=True)
class AttentionBlocks:
    """Blocks of self-attention: norm -> attention -> +, norm -> linear -> ReLU -> linear -> +.

    count    number of blocks
    heads    per block, which partition the width
    dropout  dropout rate in training, also after the positions and in the attention weights

    Raises ValueError for sizes below 1, and a dropout outside [0, 1).
    """

    count: int = 2
    heads: int = 1
    dropout: float = 0.2

    def __post_init__(self) -> None:
        check.whole("blocks", self.count, 1)
        check.whole("heads", self.heads, 1)
        if check.number("dropout", self.dropout, 0) >= 1:
            raise ValueError(f"dropout: found {self.dropout}, expected a share of at least 0 and less than 1")


class AttentionTrunk(TorchTrunk):
    """Learned positions -> dropout -> blocks of causal self-attention -> layer norm; a linear map if `outputs` is not `width`.

    width    dimensions of an item's vector
    outputs  dimensions of a hidden vector; None: width
    length   T, maximum number of items used
    every    True: T examples are a sequence, as from a SequenceFeed of that length, and each position gives a hidden vector.
             False: an example is T concatenated vectors, as contexts of a text, and the last gives it
    blocks   AttentionBlocks(2, heads=1, dropout=0.2), or their number
    optimiser  AdamW(rate, betas=..., decay=..., clip=...); None: of rate 0.001 with betas 0.9 and 0.98, without decay
    threads, seed  see TorchTrunk; the seed draws the weights too

    A checkpoint keeps all of it. Raises ValueError for sizes below 1, a width not divisible by heads, another optimiser.

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
        blocks: int | AttentionBlocks = 2,
        optimiser: str | AdamW | None = None,
        threads: int | None = None,
        seed: int = 0,
    ):
        torch = pytorch()
        from ._attention import Attention

        self.width, self.length = check.whole("width", width, 1), check.whole("length", length, 1)
        own = blocks if isinstance(blocks, AttentionBlocks) else AttentionBlocks(blocks)
        if width % own.heads:
            raise ValueError(f"heads: found {own.heads}, expected a divisor of {width}, the width that they share")
        usual = AdamW(RATE, betas=BETAS, decay=0.0)
        moves: Any = optimisers.taken(usual if optimiser is None else optimiser, ("adamw",))
        self.every, self.blocks, self.rate = bool(every), own, RATE if moves.rate is None else moves.rate
        self.decay, self.betas = moves.decay, moves.betas
        seed, outputs = check.whole("seed", seed, 0), width if outputs is None else check.whole("outputs", outputs, 1)
        with drawing([torch.default_generator], (seed,)):
            form = dataclasses.asdict(own)
            net = Attention(width, outputs, length=length, every=every, blocks=form.pop("count"), **form)
        adam = torch.optim.AdamW(net.parameters(), lr=self.rate, betas=self.betas, weight_decay=self.decay)
        inputs, sequence = (width, length) if every else (length * width, None)
        settings = {"clip": moves.clip, "sequence": sequence, "threads": threads, "seed": seed}
        super().__init__(net, inputs, outputs, optimiser=adam, **settings)

    def describe(self) -> dict[str, Any]:
        form = dataclasses.asdict(self.blocks)
        blocks = {"blocks": form.pop("count")} | form
        own = {name: getattr(self, name) for name in ("width", "length", "every")} | blocks
        own |= {name: getattr(self, name) for name in ("rate", "decay", "outputs", "clip", "seed")}
        betas = {} if self.betas == BETAS else {"betas": self.betas}
        return {"kind": self.kind} | own | betas | {"state": self._state.facts()}


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> AttentionTrunk:
    """Returns the trunk from command-line options; see hybrid/trunk/__init__.py. Concatenated rows become positions."""
    every = options.get("order") == "sequence"
    length = options["history"] if every else inputs // options["width"]
    if length < 2:
        raise ValueError(
            f"--trunk attention: found examples of {length} row, expected several: --order sequence with --history, or "
            "--context, of at least 2"
        )
    blocks, moves = AttentionBlocks(dropout=options["dropout"]), AdamW(options["trunk_rate"], betas=BETAS, decay=0.0)
    own: dict[str, Any] = {"length": length, "every": every, "blocks": blocks, "optimiser": moves, "seed": seed}
    return AttentionTrunk(options["width"], outputs, **own)


def rebuild(state: dict[str, Any], blocks: int, heads: int, dropout: float, **facts: Any) -> AttentionTrunk:
    """Returns the trunk from describe(), with memory for the optimiser state."""
    moves = AdamW(facts.pop("rate"), betas=facts.pop("betas", BETAS), decay=facts.pop("decay"), clip=facts.pop("clip"))
    made = AttentionTrunk(**facts, blocks=AttentionBlocks(blocks, heads, dropout), optimiser=moves)
    made._state.expect(state)
    return made
