"""What else is measured where the user leaves it to us whether a readout is on the CPU or beside the trunk on its GPU."""

from typing import Any, NamedTuple


class Trial(NamedTuple):
    """Other values of a readout's options, and what to say of them if they are taken."""

    options: dict[str, Any]
    remark: str


class Trials(NamedTuple):
    """What a readout's file answers to `trials(options, classes, examples)`.

    tried  measured on the GPU, beside the readout with the options that the user gave
    note   why others are not tried; "" for no reason
    rival  a kind of readout whose time is told beside the others, but which is never taken: it is another model; "" for none
    """

    tried: tuple[Trial, ...] = ()
    note: str = ""
    rival: str = ""
