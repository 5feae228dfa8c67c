"""Pickles that call what they should not, and what fails a test where something of them is run."""

import os
import pickle


class Call:
    """Pickled as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


EVIL = pickle.dumps(Call(os.system, "exit 3"))


def never(*arguments, **named):
    raise AssertionError("something of a file was run")
