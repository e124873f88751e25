"""The first lines of a report, of records that lack a number."""

import pytest

from ornstein.report.sections._lead import _chains_met, _found


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
