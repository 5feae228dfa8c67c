"""What the catalogue says, held against the files where they are on this machine."""

import re

import pytest

from hybrid.data import DATASETS, right
from tests.data import real

FILES = [file for found in DATASETS.values() for file in found.files]
OTHER_ORDER = (
    "wikitext-2/train.txt"  # the copy beside the checkout has the articles in another order than the public file
)


def test_addresses_name_one_state_of_what_they_point_to():
    for found in DATASETS.values():
        for source in found.sources:
            assert re.match(
                r"https://(raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/|files\.grouplens\.org/)",
                source.address,
            )
            assert re.fullmatch(r"sha256:[0-9a-f]{64}|git:[0-9a-f]{40}", source.file.digest)
    assert len({file.path for file in FILES}) == len(FILES)


@pytest.mark.parametrize("file", [file for file in FILES if file.path != OTHER_ORDER], ids=lambda file: file.path)
def test_sizes_and_digests_are_those_of_the_files(file):
    assert right(file, real(file.path))
