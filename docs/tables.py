"""What templates call: tables and cells that take more than one number."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from docs.records import Entry, Files, Rows, Values, newest, read, shown
from ornstein.studies._row_scores import RowScores
from ornstein.studies.sdebnn._table1 import beside_twin

_NUM_SPLITS = 20
_JUDGED = {
    "accuracy": (
        ("agreement", "agreement", ".3f"),
        ("total variation", "total_variation", ".3f"),
        ("accuracy, %", "accuracy", ".1f", 100),
        ("NLL", "nll", ".3f"),
        ("ECE × 10⁻²", "ece", ".1f", 100),
    ),
    "rmse": (
        ("total variation", "total_variation", ".3f"),
        ("shift of the mean", "mean_shift", ".2f"),
        ("RMSE", "rmse", ".3f"),
        ("NLL", "nll", ".3f"),
    ),
}
_EFFORT = (
    ("draws", "num_draws", ",d"),
    ("gradients of all rows", "num_gradients", ",.0f"),
    ("seconds", "seconds", ",.0f"),
)


def made(found: Entry) -> str:
    """How a file was made: the command, the commit, the machine and the seed."""
    origin = found.provenance
    command = re.sub(r" --out \S+| --overwrite", "", origin.command)
    commit = origin.commit[:7]
    return f"`{command}`, commit {commit}, {origin.device}, seed {origin.seed}"


def spread(values: Values, form: str) -> str:
    """The least and the most of several."""
    return f"{shown(values.least, form)} to {shown(values.most, form)}"


def table(rows: Sequence[Entry], *columns: tuple) -> str:
    """A row for each entry.

    Args:
        rows: of any table; what one lacks is shown as "–".
        columns: the header, the name of the value, its format and a factor.
    """

    def cell(row: Entry, name: str, form: str = "", factor: float = 1) -> str:
        value = row.maybe(name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return shown(value if factor == 1 else factor * value, form)

    headers = " | ".join(header for header, *_ in columns)
    return _markdown(
        headers, [[cell(row, *column) for _, *column in columns] for row in rows]
    )


def targets(found: Rows) -> str:
    """What a benchmark measured on each processor, beside the newest run's aims."""
    lines = []
    for aim in newest(found).targets:
        rows = [entry.targets.where(name=aim.name) for entry in found]
        measured = [_ratio(of[0].ratio, aim) if of else "–" for of in rows]
        lines.append([aim.name, *measured, _aim(aim)])
    processors = " | ".join(map(processor, found))
    return _markdown(f"ratio | {processors} | aim", lines)


def processor(entry: Entry) -> str:
    """Where a benchmark ran, as far as its speeds depend on it."""
    made = entry.provenance
    vectors = made.instructions.partition(" ")[2] if made.has("instructions") else ""
    named = {"avx512": ", AVX-512"}.get(vectors, f", {vectors.upper()}")
    model = re.sub(r"\(R\)| Processor| @ .*", "", made.cpu)
    return model + (named if vectors else "")


def _ratio(ratio: float, aim: Entry) -> str:
    is_low = aim.has("at_least") and not ratio >= aim.at_least
    is_high = aim.has("at_most") and not ratio <= aim.at_most
    missed = ", missed" if is_low or is_high else ""
    return shown(ratio, ",.0f" if ratio > 1000 else ".2f") + missed


def _aim(row: Entry) -> str:
    if not row.has("at_most"):
        return f"≥ {row.at_least:g}" if row.has("at_least") else ""
    if not row.has("at_least"):
        return f"≤ {row.at_most:g}"
    is_one = row.at_least == row.at_most
    return ("= " if is_one else f"{row.at_least:g} to ") + f"{row.at_most:g}"


def exactness_table(rows: Rows) -> str:
    """Each target's methods: how many, and the row that is furthest off."""
    lines = []
    for target in dict.fromkeys(row.target for row in rows):
        ours = rows.where(target=target)
        worst = max(ours, key=lambda row: row.error)
        lines.append(
            [
                target,
                str(len(set(ours.all("method")))),
                str(len(ours)),
                f"{worst.error:.1f} ({worst.bound:g})",
                f"{worst.method}, {worst.moment}",
                shown(ours.given("power").most, ".3f"),
            ]
        )
    head = "held to | methods | rows | largest error (bound) | of | largest power"
    return _markdown(head, lines)


def gradients(found: Entry) -> str:
    """One solve's gradients: what they cost, and how far their losses part."""
    lines = []
    for name in ("backprop", "checkpointed", "reversible", "backsolve"):
        apart = found.rows.one(gradient=name, seed="all")
        first = found.rows.where(gradient=name)[0]
        memory = [getattr(first, f"temporary_megabytes_{n}") for n in (5, 20, 80)]
        difference = apart.largest_difference_from_backprop
        cells = [f"`{name.title()}`", shown(difference, ".0e") if difference else "–"]
        cells += [shown(megabytes, ".1f") for megabytes in memory]
        cells += [f"{first.drift_evaluations}, {first.drift_evaluations_backward}"]
        lines.append(cells)
    head = "gradient | difference | 5 | 20 | 80 | drift evaluations, there and back"
    return _markdown(head, lines)


def corruptions(by_severity: Entry, summary: Entry, **labels: str) -> str:
    """From clean images to the strongest corruptions, a row a model."""
    lines = []
    for name, label in labels.items():
        model = name.replace("_", "-")
        ends = [by_severity.rows.one(model=model, severity=s) for s in (0, 5)]
        ours = summary.rows.one(model=model)
        cells = [label]
        for score, factor, form in (
            ("error", 100, ".1f"),
            ("ece", 100, ".1f"),
            ("nll", 1, ".2f"),
        ):
            both = [shown(factor * getattr(end, score), form) for end in ends]
            cells.append(" → ".join(both))
        cells.append(shown(100 * ours.mce, ".1f"))
        lines.append([*cells, shown(ours.mce_relative_to_clean, ".2f")])
    head = (
        " | error, %, clean → severity 5 | ECE × 10⁻² | NLL | mean corruption error, % "
        "| the same over clean"
    )
    return _markdown(head, lines)


def inducing_minus_plain(**files: Entry) -> str:
    """What inducing inputs change on images, a row a data set and start."""
    lines = []
    for label, found in files.items():
        for start in ("point", "gaussian"):
            rows = found.rows.where(w0=start)
            change = rows.one(drift="inducing minus plain")
            plain = rows.where(drift="plain").all("elbo").mean
            cells = [label, start, shown(change.elbo, "+.2f"), shown(plain, ",.0f")]
            for name in ("nll", "ece", "auroc_noise", "auroc_rotated"):
                cells.append(shown(getattr(change, name), "+.4f"))
            lines.append([*cells, shown(change.train_seconds, "+.0f")])
    head = " | w₀ | ELBO | of | NLL | ECE | AUROC, noise | AUROC, rotated | training, s"
    return _markdown(head, lines)


def calls(results: Path) -> dict[str, Callable[..., Any]]:
    """What expressions may call.

    Args:
        results: the folder of files.
    """
    files = Files(results, {})

    def runs(data: str, model: str, scale: str = "quick") -> Rows:
        """The seeds of a model of table 1."""
        folder = results / "table1" / f"{data}-{scale}"
        return Rows(read(path) for path in sorted(folder.glob(f"{model}-[0-9].json")))

    def minus_twin(
        data: str,
        model: str,
        scale: str = "quick",
        twin: str | None = None,
        seed: int = 0,
    ) -> Entry:
        """How much worse it predicts test rows than a twin, by default without noise.

        Of one seed; standard errors are those over test rows.
        """
        folder = results / "table1" / f"{data}-{scale}"
        other = twin or f"{model}-without-noise"
        names = (f"{model}-{seed}.npz", f"{other}-{seed}.npz")
        ours, its = (RowScores.load(folder / name) for name in names)
        if ours is None or its is None:
            raise FileNotFoundError(f"{folder} lacks {names[0]} or {names[1]}")
        return Entry(beside_twin([(ours, its)]), names[0])

    def table1(data: str, **labels: str) -> str:
        """Table 1, a row a model."""
        digits = {"mnist": (2, 2, 4), "cifar10": (1, 1, 2)}[data]
        lines = []
        for model, label in labels.items():
            ours = runs(data, model.replace("_", "-"))
            if not set(ours.given("kl_weight")) <= {1.0}:
                raise ValueError(f"{model} is not at KL weight 1, as the table says")
            cells = [label, shown(ours[0].num_parameters, ",d")]
            for name, count in zip(("accuracy", "ece", "nll"), digits, strict=True):
                values = ours.all(name).times(1 if name == "nll" else 100)
                cells.append(shown(values, f"± .{count}f"))
            kl = ours.given("kl").mean or math.nan  # a point has none
            cells.append(shown(kl, ",.0f" if kl > 1000 else ".1f"))
            cells.append(shown(ours.all("epistemic_share").mean, ".2f"))
            lines.append([*cells, str(len(ours))])
        head = (
            " | parameters | accuracy, % | ECE × 10⁻² | NLL | KL, nats "
            "| epistemic share | seeds"
        )
        return _markdown(head, lines)

    def uci_scores(name: str, method: str) -> str:
        """RMSE / log likelihood, and of how many splits if not all.

        Bold where it is at or better than what is published, over all of them.
        """
        found = files["uci"].rows.where(data=name, method=method)
        if not found:
            return "–"
        (row,) = found
        text = _scores(name, row.rmse, row.log_likelihood)
        if row.num_splits < _NUM_SPLITS:
            return f"{text} ({row.num_splits:.0f})"
        return f"**{text}**" if row.at_or_better is True else text

    def as_typed_table() -> str:
        """A row for each model: scores by set, beside what is published of its kind."""
        rows = files["uci_as_typed"].rows
        names = list(dict.fromkeys(row.data for row in rows))
        lines = []
        for model in dict.fromkeys(row.model for row in rows):
            ours = {row.data: row for row in rows.where(model=model)}
            called = "no `--model`" if model == "auto" else f"`--model {model}`"
            cells = [_typed(ours[n]) if n in ours else "–" for n in names]
            lines.append([called, *cells])
            if not ours[min(ours)].has("published_rmse"):
                continue
            cells = [_published(ours[n]) if n in ours else "–" for n in names]
            kind = "MC dropout" if model == "auto" else "its kind"
            lines.append([f"{kind}, published", *cells])
        return _markdown(" | " + " | ".join(names), lines)

    def as_typed_seconds() -> Values:
        """What each split's chains took, of `ornstein train` without a model."""
        kept = files["pieces"].at("uci-as-typed-full").pieces
        chains = files["uci_as_typed"].rows.where(model="auto")
        return Values(
            kept.at(f"{row.data}_auto_{split}").value.seconds
            for row in chains
            for split in row.split_numbers
        )

    def uci_beside(method: str, *, is_gap: bool = False) -> str:
        """Its scores minus HMC's on the same splits, a data set after the other."""
        rows = files["uci"].rows.where(method=method).having("rmse_minus_hmc")
        of = rows.naming if is_gap else rows.not_naming
        rows = of("-gap", by="data")
        return "; ".join(
            f"{row.data} {shown(row.rmse_minus_hmc, '.2f')} ± "
            f"{row.rmse_minus_hmc_se:.2f} / "
            f"{shown(row.log_likelihood_minus_hmc, '.2f')} ± "
            f"{row.log_likelihood_minus_hmc_se:.2f} ({row.num_splits_beside_hmc})"
            for row in rows
        )

    def uci_minus(method: str, other: str) -> str:
        """One method's scores minus another's, in pairs, a data set after the other."""
        found = []
        for row in files["uci"].rows.where(method=method).not_naming("-gap", by="data"):
            for twin in files["uci"].rows.where(data=row.data, method=other):
                ours, theirs = (
                    dict(zip(r.split_numbers, r.splits, strict=True))
                    for r in (row, twin)
                )
                both = [split for split in ours if split in theirs]
                pairs = zip(*[(ours[s], theirs[s]) for s in both], strict=True)
                of_us, of_them = map(np.array, pairs)
                change = of_us - of_them
                mean = change.mean(0)
                error = change.std(0, ddof=1) / math.sqrt(len(both))
                rmse, fit = (shown(value, ".2f") for value in mean)
                found.append(
                    f"{row.data} {rmse} ± {error[0]:.2f} / {fit} ± {error[1]:.2f} "
                    f"({len(both)})"
                )
        return "; ".join(found)

    def bde_table() -> str:
        """MILE as its authors have it, and HMC and MILE here, on the same splits."""
        lines, splits = [], files["bde"].provenance.splits

        def ours(name: str, method: str) -> str:
            scores: dict[int, Any] = {}
            for own in files["uci"].rows.where(data=name, method=method):
                scores = dict(zip(own.split_numbers, own.splits, strict=True))
            found = [scores[split] for split in splits if split in scores]
            if len(found) < len(splits):
                return "–"
            rmse = sum(error for error, _ in found) / len(found)
            return f"{rmse:.2f} / " + ", ".join(shown(fit, ".2f") for _, fit in found)

        for row in files["bde"].rows:
            theirs = ", ".join(shown(-nll, ".2f") for nll in row.nlls)
            cells = [f"{row.rmse:.2f} / {theirs}", f"{row.seconds:.0f}"]
            cells += [ours(row.data, method) for method in ("hmc", "mile")]
            lines.append([row.data, *cells])
        return _markdown(" | bde | seconds | `HMC` | ours", lines)

    def agreement_table(data: str) -> str:
        """Methods beside the reference, those nearest to it first; or that none is."""
        rows = files["agreement"].rows.where(data=data)
        if not rows:
            return "Not measured yet."
        ceiling = [row for row in rows if row.method.startswith("hmc")]
        nearest = sorted(
            (row for row in rows.having("total_variation") if row not in ceiling),
            key=lambda row: row.total_variation,
        )
        judged = _JUDGED["rmse" if rows.having("rmse") else "accuracy"]
        columns = (("", "method"), *judged, *_EFFORT)
        lines = [table([*ceiling, *nearest], *columns)]
        for row in rows.having("failed"):
            lines.append(f"`{row.method}` has no row. It ended so: *{row.failed}*")
        return "\n\n".join(lines)

    def rhat_sentence(data: str) -> str:
        """The prior's scale, and whether the reference's chains have met."""
        rows = files["agreement"].rows.where(data=data).having("r_hat_median")
        if not rows:
            return ""
        (row,) = rows
        return (
            f"s is {row.prior_scale:g}. R-hat of the reference: median "
            f"{row.r_hat_median:.3f}, 95 % below {row.r_hat_95:.3f}, at most "
            f"{row.r_hat_max:.2f}; acceptance {row.acceptance_rate:.2f}, "
            f"{row.num_divergent} divergent."
        )

    found = (
        abs,
        agreement_table,
        as_typed_seconds,
        bde_table,
        rhat_sentence,
        corruptions,
        exactness_table,
        gradients,
        inducing_minus_plain,
        len,
        minus_twin,
        processor,
    )
    found += (as_typed_table, made, max, min, runs, spread, table, table1, targets)
    return {call.__name__: call for call in (*found, uci_scores, uci_beside, uci_minus)}


def _scores(name: str, rmse: float, log_likelihood: float) -> str:
    return f"{rmse:.{3 if name == 'kin8nm' else 2}f} / {shown(log_likelihood, '.2f')}"


def _typed(row: Entry) -> str:
    scores = _scores(row.data, row.rmse, row.log_likelihood)
    return f"{scores} ({row.num_splits:.0f}; {row.seconds:.0f} s)"


def _published(row: Entry) -> str:
    return _scores(row.data, row.published_rmse, row.published_log_likelihood)


def _markdown(head: str, lines: list[list[str]]) -> str:
    """A table; the headers are one text, " | " between them."""
    rule = "|".join("---" for _ in head.split(" | "))
    return "\n".join(
        [f"| {head} |", f"|{rule}|", *(f"| {' | '.join(line)} |" for line in lines)]
    )
