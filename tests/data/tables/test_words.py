"""Columns of words are read without trying what words are not."""

import numpy as np
import pandas as pd
import pytest

from ornstein.data import TableEncoding

WORDS = ["red", "green", "blue", "Information", "now", "10 km", "today"]


def _learned(cells: list[str]) -> TableEncoding:
    frame = pd.DataFrame({"a": cells})
    return TableEncoding.learned(frame, ["a"], np.arange(len(cells)), "t")[0]


def test_words_are_no_dates(monkeypatch: pytest.MonkeyPatch):
    """`now` is a word. Catches seven formats tried on each column of words, which was
    most of the time of a wide table.
    """

    def refuse(*args, **kwargs):
        raise AssertionError("a date was tried")

    monkeypatch.setattr(pd, "to_datetime", refuse)
    for words in (WORDS, ["now", "today"]):
        (column,) = _learned(words * 20).columns
        assert column.kind == "category"
        assert set(column.categories) == set(words)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["2024-01-31", "2023-12-01"], "date"),
        (["1.2.20", "13.2.20"], "date"),  # the fewest digits of all formats
        (["13/2/2020", ""], "date"),
        (["Inf", "1"], None),
        (["TRUE", "false"], "boolean"),
        (["1,5", "2,5"], "number"),
        (["-.5", "\u22123"], "number"),
        (["'=a", "b"], "category"),
    ],
)
def test_what_is_no_word_is_read_as_before(cells, kind):
    """Catches a shortcut that takes dates, numbers or truths for words."""
    if kind is None:
        with pytest.raises(ValueError, match="no finite number"):
            _learned(cells * 20)
        return
    (column,) = _learned(cells * 20).columns
    assert column.kind == kind
    if kind == "category":
        assert set(column.categories) == {"=a", "b"}
