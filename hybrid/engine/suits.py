"""Whether the parts of an engine suit each other and a feed suits them: ValueError, saying what does not."""

from typing import TYPE_CHECKING, Any

from .. import backend, check
from ..feeds import Feed, width
from ..readout import Readout
from .embedding import Embedding
from .inputs import Inputs
from .schedule import part
from .trunk import TrunkProtocol

if TYPE_CHECKING:
    from .engine import Engine


def dense_backend(trunk: TrunkProtocol, device: str | None) -> backend.Backend:
    """Where the dense stages run; where the user leaves it open, a trunk that computes on the CPU only is put there."""
    kinds = trunk.places
    chosen = backend.choose("cpu" if kinds == ("cpu",) and device in (None, "auto") else device)
    if chosen.name.partition(":")[0] not in kinds:
        raise ValueError(
            f'device: found "{chosen.name}", expected one of {", ".join(kinds)}: a {trunk.kind} trunk computes nowhere else'
        )
    return chosen


def check_widths(embedding: Embedding | Inputs, trunk: TrunkProtocol | None, readout: Readout) -> None:
    """ValueError unless each part gives as many numbers an example as the next one takes."""
    if trunk and embedding.outputs != trunk.inputs:
        raise ValueError(f"trunk: takes {trunk.inputs} inputs, the embedding gives {embedding.outputs}")
    source, width = ("trunk", trunk.outputs) if trunk else ("embedding", embedding.outputs)
    if readout.width != width:
        raise ValueError(f"readout: width {readout.width}, the {source} gives {width}")


def check_delay(delay: int, trunk: TrunkProtocol | None) -> None:
    """ValueError for a delay out of range, or one that the trunk cannot have."""
    check.whole("delay", delay, 0, 1)
    if delay and (reason := getattr(trunk, "undelayed", None)):
        raise ValueError(f"delay: found {delay}, expected 0: {reason}")


def check_place(name: str, part: Any, trunk: TrunkProtocol | None, dense: Any) -> None:
    """ValueError unless the embedding or the readout is on the CPU, or on the trunk's device.

    name   "embedding" or "readout"
    dense  the Backend of the trunk
    """
    found, option = part.backend, {"embedding": "--rows-device", "readout": "--readout-device"}[name]
    if found.device.host_memory:
        return
    if trunk is None:
        raise ValueError(
            f'{name}: found one on "{found.name}", expected one on the CPU: without a trunk the hidden vectors are rows, '
            f"which are the CPU's; make it without backend ({option} cpu)"
        )
    if found.device is not dense.device:
        raise ValueError(
            f'{name}: found one on "{found.name}", expected one on the CPU or on the trunk\'s device, "{dense.name}"; '
            f'make it without backend ({option} cpu), or give the engine device="{found.name}" (--device)'
        )


def overlap_of(engine: "Engine") -> bool | None:
    """Whether the stages of an engine overlap; None: what is faster is measured."""
    if engine.trunk is None:  # there is nothing dense to overlap with
        return False
    here = engine.overlap is None and engine.dense.device.threads
    return False if here and getattr(engine.trunk, "threaded", False) else engine.overlap


def check_feed(engine: "Engine", feed: Feed) -> None:
    """ValueError unless the ids, classes and batches of a feed are of the sizes that an engine takes."""
    if width(feed) != engine.embedding.dense:
        raise ValueError(f"feed: has {width(feed)} numbers an example, the engine takes {engine.embedding.dense}")
    if feed.rows > engine.embedding.rows:
        remedy = "; embedding.add_rows makes more" if engine.embedding.rows else ""
        raise ValueError(f"feed: has ids up to {feed.rows}, the embedding {engine.embedding.rows} rows{remedy}")
    if feed.batch % engine.whole:
        raise ValueError(
            f"feed: has batches of {feed.batch}, expected a multiple of {engine.whole}, the trunk's sequence"
        )
    if feed.classes != engine.readout.classes:
        grows = feed.classes > engine.readout.classes and hasattr(engine.readout, "add_classes")
        remedy = "; readout.add_classes makes more" if grows else ""
        raise ValueError(f"feed: has {feed.classes} classes, the readout {engine.readout.classes}{remedy}")
    rows = part(feed.batch, engine.micro_batches, engine.whole)
    if rows > engine.readout.batch:
        raise ValueError(f"feed: {rows} examples a micro-batch, the readout was made for {engine.readout.batch}")
