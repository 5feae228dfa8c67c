"""A report as lines for a person."""

from hybrid.train.runs import lines


def test_words_and_numbers_are_lines_and_all_else_is_left_out():
    report = {"run": "x", "examples_per_second": 1234567.8, "perplexity": 12.3456, "curve": [1], "pace": None}
    found = lines(report).splitlines()
    assert found == ["run                  x", "examples per second  1,234,568", "perplexity           12.35"]
    assert lines({}) == ""
