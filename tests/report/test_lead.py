"""The first lines of a report, of records that lack a number."""

from pathlib import Path

import numpy as np
import pytest

from ornstein.report._run_record import RunRecord
from ornstein.report.page import Ids
from ornstein.report.rows import JudgedRows, KeptRows
from ornstein.report.sections import Sheet
from ornstein.report.sections._lead import _chains_met, _found, _how_good


@pytest.mark.parametrize("r_hat", [None, float("nan")])
def test_chains_without_an_r_hat(r_hat):
    """As of outputs that never changed, which a record has as null. Catches (seen) a
    comparison with nothing, and chains that are said to agree.
    """
    result = {"diagnosis": [], "r_hat": r_hat, "num_divergent": 0}
    assert "found no fault" in _found(result)
    assert _chains_met(result) == ""


def test_chains_that_are_apart_are_not_called_faultless():
    result = {"diagnosis": [], "r_hat": 1.3}
    assert _found(result) == ""
    assert "have not met (R-hat up to 1.3" in _chains_met(result)


def test_of_one_test_row_no_error_is_said():
    """Catches (seen) "is 1 \N{PLUS-MINUS SIGN} \N{EN DASH} standard deviations"."""
    errors = {"rmse": float("nan")}
    one, none = np.zeros(1), np.zeros(0)
    rows = JudgedRows("numbers", 1, one, {}, none, errors, {}, ())
    result = {"rmse": 1.0, "nll": 2.0, "nll_se": None}
    record = RunRecord(Path("run"), {}, result, None, [], None, KeptRows(rows), ())
    text = _how_good(Sheet(record, Ids()))
    assert "on 1 test row is 1 standard deviations; " in text
    assert "\N{PLUS-MINUS SIGN}" not in text
