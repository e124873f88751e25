"""What templates call: tables and cells that take more than one number."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from docs.records import Entry, Files, Rows, Values, read, shown

_PUBLISHED = {"concrete": 20, "yacht": 20, "wine-quality-red": 20, "kin8nm": 20}


def made(found: Entry) -> str:
    """How a file was made: the command, the commit, the machine and the seed."""
    origin = found.provenance
    command = re.sub(r" --out \S+| --overwrite", "", origin.command)
    commit = origin.commit[:7]
    return f"`{command}`, commit {commit}, {origin.device}, seed {origin.seed}"


def table(rows: Sequence[Entry], *columns: tuple) -> str:
    """A row for each entry.

    Args:
        rows: of any table; what one lacks is shown as "–".
        columns: the header, the name of the value, its format and a factor.
    """

    def cell(row: Entry, name: str, form: str = "", factor: float = 1) -> str:
        value = row.maybe(name)
        return shown(value if factor == 1 else factor * value, form)

    lines = [[header for header, *_ in columns], ["---"] * len(columns)]
    lines += [[cell(row, *column) for _, *column in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def targets(found: Entry) -> str:
    """What a benchmark measured, beside what was aimed at."""
    lines = ["| ratio | measured | aim |", "|---|---|---|"]
    for row in found.targets:
        aim = f"≥ {row.at_least:g}" if row.has("at_least") else ""
        if row.has("at_most"):
            aim = "= 1" if aim else f"≤ {row.at_most:g}"
        missed = "" if row.is_met else ", missed"
        lines.append(f"| {row.name} | {shown(row.ratio, ',.4g')} | {aim}{missed} |")
    return "\n".join(lines)


def exactness_table(rows: Rows) -> str:
    """Each target's methods: how many, and the row that is furthest off."""
    lines = [
        "| held to | methods | rows | largest error (bound) | of | largest power |",
        "|---|---|---|---|---|---|",
    ]
    for target in dict.fromkeys(row.target for row in rows):
        ours = rows.where(target=target)
        worst = max(ours, key=lambda row: row.error)
        cells = [
            target,
            str(len(set(ours.all("method")))),
            str(len(ours)),
            f"{worst.error:.1f} ({worst.bound:g})",
            f"{worst.method}, {worst.moment}",
            shown(ours.given("power").most, ".3f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def gradients(found: Entry) -> str:
    """One solve's gradients: what they cost, and how far their losses part."""
    lines = [
        "| gradient | difference | 5 | 20 | 80 | drift evaluations, there and back |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("backprop", "checkpointed", "reversible", "backsolve"):
        whole = found.rows.one(gradient=name, seed="all")
        first = found.rows.where(gradient=name)[0]
        memory = [getattr(first, f"temporary_megabytes_{n}") for n in (5, 20, 80)]
        cells = [f"`{name.title()}`", shown(whole.largest_difference_from_backprop, ".0e")]
        cells += [shown(megabytes, ".1f") for megabytes in memory]
        cells += [f"{first.drift_evaluations}, {first.drift_evaluations_backward}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def corruptions(by_severity: Entry, summary: Entry, **labels: str) -> str:
    """From clean images to the strongest corruptions, a row a model."""
    lines = [
        "| | error, %, clean → severity 5 | ECE × 10⁻² | NLL | mean corruption error, "
        "% | the same over clean |",
        "|---|---|---|---|---|---|",
    ]
    for name, label in labels.items():
        model = name.replace("_", "-")
        ends = [by_severity.rows.one(model=model, severity=s) for s in (0, 5)]
        cells = [label]
        for score, factor, form in (("error", 100, ".1f"), ("ece", 100, ".1f")):
            both = [shown(factor * getattr(end, score), form) for end in ends]
            cells.append(" → ".join(both))
        cells.append(" → ".join(shown(end.nll, ".2f") for end in ends))
        ours = summary.rows.one(model=model)
        cells += [shown(100 * ours.mce, ".1f"), shown(ours.mce_relative_to_clean, ".2f")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def inducing_minus_plain(**files: Entry) -> str:
    """What inducing inputs change on images, a row a data set and start."""
    lines = [
        "| | w₀ | ELBO | of | NLL | ECE | AUROC, noise | AUROC, rotated | training, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for label, found in files.items():
        for start in ("point", "gaussian"):
            rows = found.rows.where(w0=start)
            change, plain = rows.one(drift="inducing minus plain"), rows.where(drift="plain")
            cells = [label, start, shown(change.elbo, "+.2f")]
            cells += [shown(plain.all("elbo").mean, ",.0f")]
            for name in ("nll", "ece", "auroc_noise", "auroc_rotated"):
                cells.append(shown(getattr(change, name), "+.4f"))
            cells.append(shown(change.train_seconds, "+.0f"))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(values: Values, form: str) -> str:
    """The least and the most of several."""
    return f"{shown(values.least, form)} to {shown(values.most, form)}"


def calls(results: Path) -> dict[str, Callable[..., Any]]:
    """What expressions may call.

    Args:
        results: the folder of files.
    """
    files = Files(results, {})

    def runs(data: str, model: str) -> Rows:
        """The seeds of a model of table 1."""
        folder = results / "table1" / f"{data}-quick"
        return Rows(read(path) for path in sorted(folder.glob(f"{model}-[0-9].json")))

    def table1(data: str, **labels: str) -> str:
        """Table 1, a row a model; the last keyword's model comes last."""
        lines = [
            "| | parameters | accuracy, % | ECE × 10⁻² | NLL | KL, nats | epistemic "
            "share | seeds |",
            "|---|---|---|---|---|---|---|---|",
        ]
        digits = {"mnist": (2, 2, 4), "cifar10": (1, 1, 2)}[data]
        for model, label in labels.items():
            ours = runs(data, model.replace("_", "-"))
            assert set(ours.given("kl_weight")) <= {1.0}, "the table is at KL weight 1"
            accuracy, ece, nll = (
                shown(ours.all(name).times(factor), f"± .{count}f")
                for (name, factor), count in zip(
                    (("accuracy", 100), ("ece", 100), ("nll", 1)), digits, strict=True
                )
            )
            kl = ours.given("kl").mean or math.nan  # a point's is no divergence
            form = ",.0f" if kl > 1000 else ".1f"
            cells = [label, shown(ours[0].num_parameters, ",d"), accuracy, ece, nll]
            share = shown(ours.all("epistemic_share").mean, ".2f")
            cells += [shown(kl, form), share, str(len(ours))]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def uci_scores(name: str, method: str) -> str:
        """RMSE / log likelihood over all splits; bold where it is at or better."""
        found = files["uci"].rows.where(data=name, method=method)
        if not found or found[0].num_splits < _PUBLISHED[name]:
            return "–"
        text = _scores(name, found[0].rmse, found[0].log_likelihood)
        return f"**{text}**" if found[0].at_or_better is True else text

    def uci_within(name: str, method: str) -> str:
        """The same of the splits that are finished, with choices within each."""
        pieces = getattr(files["pieces"], "uci-full").pieces
        found = [
            pieces.maybe(f"{name}_{method}_{split}")
            for split in range(_PUBLISHED[name])
            if pieces.has(f"{name}_{method}_{split}")
        ]
        if not found:
            return "–"
        rows = Rows(piece.value for piece in found)
        rmse, ll = rows.all("rmse").mean, rows.all("log_likelihood").mean
        return f"{_scores(name, rmse, ll)} ({len(rows)})"

    found = (abs, corruptions, exactness_table, gradients, inducing_minus_plain, len)
    found += (made, max, min, runs, spread, table, table1, targets, uci_scores, uci_within)
    return {call.__name__: call for call in found}


def _scores(name: str, rmse: float, log_likelihood: float) -> str:
    return f"{rmse:.{3 if name == 'kin8nm' else 2}f} / {shown(log_likelihood, '.2f')}"
