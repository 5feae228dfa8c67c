"""A clip whose frames are told apart at a glance."""

import numpy as np

from hybrid.feeds.video.clip import Frame


class Numbers:
    """A clip whose frame i is filled with first + i; every third has no label."""

    rate = 25.0

    def __init__(self, first, length, shape=(2, 3, 1)):
        self.first, self.length, self.shape, self.decoded = first, length, shape, []

    def __len__(self):
        return self.length

    def __getitem__(self, number):
        self.decoded.append(number)
        value = self.first + number
        box = None if value % 3 == 0 else np.array([value, 0, 1, 1], np.float32)
        return Frame(np.full(self.shape, value, np.uint8), box)

    def describe(self):
        return {"kind": "numbers", "first": self.first}
