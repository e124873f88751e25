"""The first lines: what was learned, how good, how far to trust it."""

import math
from typing import Any

from ..page import Html, count, number, percent, tag, with_error
from ..rows import JudgedRows
from ._base import Sheet
from ._scores import error_of, test_rows

_FAMILIES = {
    "sdebnn": "an SDE-BNN, whose weights follow a stochastic equation over depth",
    "mean-field": "a network with independent Gaussian weights",
    "implicit": "a network with noise on its layers' inputs",
    "mc-dropout": "a network with dropout at prediction",
    "ensemble": "an ensemble of networks",
    "deterministic": "a single network",
    "map": "a single network at its posterior's mode",
    "laplace": "a network with a normal around its weights",
    "swag": "a network with the normal of its last iterates",
    "latent-sde": "a latent SDE",
    "latent-ode": "a latent ODE",
}
_AGREED = 1.01
_NEARLY = 1.05
_RIGHT_COVERAGE = 0.9


def lead(sheet: Sheet) -> Html:
    """Three sentences.

    Args:
        sheet: of the run.
    """
    said = {
        "Learned": _learned(sheet),
        "How good": _how_good(sheet),
        "How far to trust it": _trust(sheet),
    }
    entries = [
        tag("div", tag("dt", name), tag("dd", text)) for name, text in said.items()
    ]
    return tag("dl", *entries, class_="lead")


def _learned(sheet: Sheet) -> str:
    record, result = sheet.record, sheet.record.result
    kernel = result.get("kernel")
    size = result.get("num_parameters")
    of = "" if size is None else f" of {count(size, 'parameter')}"
    if kernel is not None:
        chains = count(result.get("num_chains", 1), "chain")
        who = f"{chains} of {kernel} sampled a network ({result.get('network')}){of}"
    else:
        model = str(result.get("model"))
        who = f"{_FAMILIES.get(model, model)} ({model}){of} learned"
        who = who[0].upper() + who[1:]
    known = record.known
    if known is None:
        return f"{who} from {result.get('data')}."
    shape = " \N{MULTIPLICATION SIGN} ".join(map(str, known.example_shape))
    inputs = {1: "features", 3: "pixels"}.get(len(known.example_shape), "numbers")
    rows, each = "training rows", f"{shape} {inputs}"
    if known.example_shape == (1,):
        each = "1 feature"
    if known.task == "series":
        rows, each = "training series", f"{shape} times and values"
    what = {
        "classification": f"the {known.num_classes} classes of {known.name}",
        "regression": f"{_targets(known.target_names)} of {known.name}",
        "series": f"the sequences of {known.name}",
    }[known.task]
    link = "for" if kernel is not None else ""
    said = " ".join(part for part in (who, link, what) if part)
    return f"{said}, from {len(known.train):,} {rows} of {each}."


def _targets(names: Any) -> str:
    if not names:
        return "the numbers"
    shown = ", ".join(f"\u201c{name}\u201d" for name in names[:3])
    return shown + (", \N{HORIZONTAL ELLIPSIS}" if len(names) > 3 else "")


def _how_good(sheet: Sheet) -> str:
    result, rows = sheet.record.result, sheet.rows
    constants = {} if rows is None else rows.constants
    said = []
    if "accuracy" in result:
        share = result["accuracy"]
        error = error_of(sheet, "accuracy", share)
        text = f"{percent(share)} of {test_rows(sheet)} are guessed right"
        text += "" if error is None else f" (\N{PLUS-MINUS SIGN} {percent(error)})"
        if "accuracy" in constants:
            alone = percent(constants["accuracy"])
            text += f", where one class for all would be right in {alone}"
        said.append(text)
    elif "rmse" in result:
        name = "rmse_in_target_units"
        name = name if name in result else "rmse"
        value, error = with_error(result[name], error_of(sheet, name, result[name]))
        unit = "in the target's unit" if name != "rmse" else "standard deviations"
        text = f"The root mean square error on {test_rows(sheet)} is {value}"
        text += f" \N{PLUS-MINUS SIGN} {error} {unit}" if error else f" {unit}"
        constant = constants.get("rmse")
        if constant:
            text += f", {percent(result['rmse'] / constant, 0)} of a constant guess's"
        said.append(text)
    value, error = with_error(result.get("nll"), result.get("nll_se"))
    of = "value" if sheet.record.task == "series" else "row"
    text = f"the negative log likelihood is {value}"
    text += f" \N{PLUS-MINUS SIGN} {error}" if error else ""
    text += f" nats a {of}"
    if "nll" in constants:
        text += f" (a constant guess: {number(constants['nll'])})"
    said.append(text if said else text[0].upper() + text[1:])
    return "; ".join(said) + "."


def _trust(sheet: Sheet) -> str:
    result, rows = sheet.record.result, sheet.rows
    parts = [_found(result), _chains_met(result), _calibrated(sheet)]
    if rows is not None and "nll_gain" in rows.constants:
        unit = "value" if sheet.record.task == "series" else "row"
        parts.insert(0, _against_constant(rows, unit))
    weight = result.get("kl_weight")
    if weight not in (None, 1) and sheet.record.climbed_bound:
        parts.append(
            f"the KL weight was {number(weight)}, so that its posterior is not Bayes'"
        )
    texts = [part for part in parts if part]
    if not texts:
        return (
            "Nothing in the run's folder says: see what is missing in the model card."
        )
    return ". ".join(text[0].upper() + text[1:] for text in texts) + "."


def _against_constant(rows: JudgedRows, unit: str) -> str:
    """Something only where a constant guess's probabilities may be as good."""
    gain, error = rows.constants["nll_gain"], rows.errors["nll_gain"]
    if not error > 0 or gain > 2 * error:
        return ""
    shown, said = with_error(gain, error)
    return (
        "its probabilities are not shown to be better than a constant guess's: they "
        f"gain {shown} \N{PLUS-MINUS SIGN} {said} nats a {unit}"
    )


def _found(result: dict[str, Any]) -> str:
    findings = result.get("diagnosis")
    if findings is None:
        return ""
    if not findings:
        if _is_apart(result):  # what is said of them comes first
            return ""
        return (
            "the diagnosis found no fault with the posterior, by the checks that it has"
        )
    names = ", ".join(str(finding.get("name")) for finding in findings)
    faults = count(len(findings), "fault")
    return f"not as it stands: the diagnosis found {faults} ({names}), told below"


def _is_apart(result: dict[str, Any]) -> bool:
    return bool(result.get("num_divergent")) or (result.get("r_hat") or 0) > _AGREED


def _chains_met(result: dict[str, Any]) -> str:
    r_hat, num_divergent = result.get("r_hat"), result.get("num_divergent")
    if r_hat is None or math.isnan(r_hat):
        return ""
    if r_hat > _AGREED:
        how = "have nearly met" if r_hat <= _NEARLY else "have not met"
        said = f"the chains {how} (R-hat up to {number(r_hat)}"
        said += f", where {_AGREED} or less says that they agree"
        ess = result.get("ess_bulk")
        said += "" if ess is None else f"; worth {number(ess)} independent draws"
        said += ")"
        said += "" if r_hat <= _NEARLY else ": they show a part of the posterior"
    else:
        said = f"the chains agree on outputs (R-hat at most {number(r_hat)})"
    if num_divergent:
        said += f". {count(num_divergent, 'sample')} of theirs follow a divergent step"
    return said


def _calibrated(sheet: Sheet) -> str:
    result, rows = sheet.record.result, sheet.rows
    if rows is not None and rows.kind == "classes":
        return confidence_words(rows)
    covered = result.get("coverage_90")
    if covered is None:
        return ""
    of = 0 if rows is None else rows.num_rows
    text = f"90\N{NO-BREAK SPACE}% intervals hold {percent(covered)} of test targets"
    if not of:
        return text
    error = (_RIGHT_COVERAGE * (1 - _RIGHT_COVERAGE) / of) ** 0.5
    return f"{text}, where right ones hold 90 \N{PLUS-MINUS SIGN} {percent(error)}"


def confidence_words(rows: JudgedRows) -> str:
    """Whether confidence is what it says, over all kept rows.

    Args:
        rows: of classes.
    """
    confidence = rows.columns["confidence"].astype(float)
    right = float((rows.columns["guess"] == rows.columns["y"]).mean())
    mean = percent(float(confidence.mean()))
    said = f"mean confidence is {mean} where {percent(right)} of guesses are right"
    error = rows.errors.get("overconfidence")  # runs of before kept none
    if error is None:
        return said
    return f"{said} (\N{PLUS-MINUS SIGN} {percent(error)}, were it right)"
