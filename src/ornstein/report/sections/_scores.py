"""Scores of the test rows, each with its standard error where that is known."""

import math
from typing import Any, NamedTuple

from ..page import count, joined, number, table, with_error
from ._base import Section, Sheet, note


class Score(NamedTuple):
    """What a number of `result.json` is.

    Attributes:
        label: in words, with its unit.
        meaning: which way is good, and of what it is.
        is_share: of the test rows, whose standard error its value tells.
    """

    label: str
    meaning: str
    is_share: bool = False


SCORES = {
    "accuracy": Score(
        "accuracy", "share of rows guessed right; higher is better", True
    ),
    "top_3_accuracy": Score("top-3 accuracy", "class among the three likeliest", True),
    "top_5_accuracy": Score("top-5 accuracy", "class among the five likeliest", True),
    "rmse_in_target_units": Score(
        "RMSE, target's unit", "of the mean prediction; lower is better"
    ),
    "rmse": Score("RMSE, standardised", "in standard deviations of the training rows"),
    "nll": Score("NLL, nats a row", "negative log predictive density; lower is better"),
    "nll_in_target_units": Score(
        "NLL, target's unit", "the same of the target as it was before scaling"
    ),
    "joint_nll": Score(
        "joint NLL, nats a series", "the best draw alone counts: not for comparing"
    ),
    "nll_errors": Score("NLL of errors", "over the rows that are guessed wrong"),
    "brier": Score("Brier score", "squared error of probabilities, 0 to 2; lower"),
    "crps": Score("CRPS, standardised", "distance of distribution and target; lower"),
    "ece": Score(
        "ECE", "gap of confidence and accuracy in 15 bins; above 0 even if calibrated"
    ),
    "coverage_90": Score("coverage of 90 % intervals", "0.9 if they keep their word"),
    "calibration_error": Score(
        "calibration error", "gap of quantiles' levels and shares; lower is better"
    ),
    "aurc": Score("AURC", "mean error over coverages of the risk curve; lower"),
    "elbo": Score("ELBO, nats of all training rows", "at KL weight 1; higher"),
    "kl": Score("KL, nats", "of posterior and prior, once for all rows"),
    "drift_gain": Score(
        "gain of the drift, nats a row", "by zeroing the drift, NLL grows so much"
    ),
}
"""By their names in `result.json`, in the order of the table."""

_TWINS = {"nll_in_target_units": "nll", "rmse_in_target_units": "rmse"}


def scores(sheet: Sheet) -> Section:
    """The table of scores.

    Args:
        sheet: of the run.
    """
    result, rows = sheet.record.result, []
    constants = {} if sheet.rows is None else sheet.rows.constants
    for name, score in SCORES.items():
        value = result.get(name)
        if not isinstance(value, int | float):
            continue
        shown, error = with_error(value, error_of(sheet, name, value))
        constant = constants.get(name)
        guess = "" if constant is None else number(constant)
        rows.append([label_of(score, sheet), shown, error, guess, score.meaning])
    columns = ["score", "value", "\N{PLUS-MINUS SIGN}", "constant guess", "what it is"]
    caption = f"Scores of {test_rows(sheet)}"
    draws = result.get("num_draws") or sheet.record.option("training", "test_draws")
    parts = [table(caption, columns, rows, is_text=[4]), note(_what_errors_are(draws))]
    if constants:
        parts.append(
            note(
                "A constant guess is the best one with the test targets known: a model "
                "that is no better has learned nothing of the inputs."
            )
        )
    return Section("Scores", joined(parts))


def error_of(sheet: Sheet, name: str, value: float | int) -> float | int | None:
    """The standard error of a score over test rows, where it is known.

    Args:
        sheet: of the run.
        name: of the score.
        value: of the score.
    """
    result = sheet.record.result
    own = result.get(f"{_TWINS.get(name, name)}_se" if "nll" in name else f"{name}_se")
    if own is not None and name != "joint_nll":
        return own
    rows = sheet.rows
    if rows is not None and name in rows.errors:
        error = rows.errors[name]
        is_known = error > 0 or name not in ("accuracy", "coverage_90")
        return error if is_known else None  # of all rows, or none: no error is 0
    number_of_rows = num_test(sheet)
    if SCORES[name].is_share and number_of_rows:
        return math.sqrt(max(value * (1 - value), 0) / number_of_rows) or None
    return None


def num_test(sheet: Sheet) -> int:
    """How many test rows there are; 0 if nobody knows.

    Args:
        sheet: of the run.
    """
    if sheet.rows is not None:
        return sheet.rows.num_rows
    return 0 if sheet.record.known is None else len(sheet.record.known.test)


def test_rows(sheet: Sheet) -> str:
    """The test rows in words.

    Args:
        sheet: of the run.
    """
    what = "test series" if sheet.record.task == "series" else "test row"
    number_of_rows = num_test(sheet)
    if not number_of_rows:
        return "the test rows"
    return (
        f"{number_of_rows:,} {what}"
        if "series" in what
        else count(number_of_rows, what)
    )


def label_of(score: Score, sheet: Sheet) -> str:
    """The name of a score, with its unit.

    Args:
        score: as tables of rows have it.
        sheet: of a run, whose rows may be series.
    """
    if sheet.record.task == "series":
        return score.label.replace("nats a row", "nats a value")
    return score.label


def _what_errors_are(num_draws: Any) -> str:
    draws = "the draws" if not num_draws else f"the {num_draws} draws"
    return (
        "\N{PLUS-MINUS SIGN} is one standard error over test rows (that of the ELBO: "
        f"over draws), for this training, this split and {draws} averaged over: "
        "another seed moves scores too, which only more runs show. Of ECE and "
        "calibration error it is by the delta method, too small where they are near "
        "0; where none stands, none is computed."
    )
