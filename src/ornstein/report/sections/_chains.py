"""Whether chains have met, and how many independent draws they are worth."""

import numpy as np

from ..page import Html, figure, figures, joined, number, table
from ..rows import ChainRecord
from ..svg import Chart, axis_of
from ._base import Section, Sheet, note

_NUM_BARS = 20
_AGREED = 1.01


def chains(sheet: Sheet) -> Section | None:
    """Diagnostics of a sampled run.

    Args:
        sheet: of the run.
    """
    result, kept = sheet.record.result, sheet.record.kept
    if "kernel" not in result:
        return None
    found = None if kept is None else kept.chains
    parts: list[Html] = [_summary(sheet, found)]
    if found is not None:
        if found.by_chain:
            parts.append(_by_chain(found))
        if len(found.r_hat):
            parts.append(figures(_r_hats(sheet, found), _effective(sheet, found)))
        traced = [_trace(sheet, found, i) for i in range(len(found.labels))]
        if found.energy.size:
            traced.append(_energy(sheet, found))
        parts.append(figures(*traced))
    parts.append(note(_what_they_are(found)))
    return Section("Chains", joined(parts))


def _what_they_are(found: ChainRecord | None) -> str:
    thinned = ""
    if found is not None and found.every > 1:
        num = found.traces.shape[2]
        thinned = (
            f" They are of one sample in {found.every}, {num} of each chain, evenly "
            "spread: of more independent draws than these they do not know."
        )
    return (
        "R-hat and effective sizes are of outputs at the first test rows (Vehtari "
        f"et al., 2021), which no permutation of hidden units changes.{thinned} Chains "
        "that agree may still all miss a part of the posterior."
    )


def _summary(sheet: Sheet, found: ChainRecord | None) -> Html:
    result = sheet.record.result
    names = (
        ("r_hat", "worst R-hat", f"{_AGREED} or less where chains agree"),
        ("ess_bulk", "least bulk ESS", "independent draws, for means"),
        ("ess_tail", "least tail ESS", "independent draws, for outer quantiles"),
        ("acceptance_rate", "acceptance rate", "of proposals"),
        ("num_divergent", "divergences", "0 where the steps can follow the density"),
        ("step_size", "step size", "the last, averaged over chains"),
        ("num_samples", "samples of a chain", "kept"),
        ("num_chains", "chains", "started apart"),
    )
    rows = [
        [label, number(result[name]), meaning]
        for name, label, meaning in names
        if isinstance(result.get(name), int | float)
    ]
    shown = table("All chains", ["", "value", "what it is"], rows, is_text=[2])
    starts = result.get("chains_started") or (found.starts if found else "")
    return joined([shown, note(f"They started {starts}.") if starts else None])


def _by_chain(found: ChainRecord) -> Html:
    names = list(found.by_chain)
    rows = [
        [f"chain {i + 1}", *(number(value) for value in values)]
        for i, values in enumerate(zip(*found.by_chain.values(), strict=True))
    ]
    return table("Each chain", ["chain", *names], rows)


def _r_hats(sheet: Sheet, found: ChainRecord) -> Html:
    values = found.r_hat[np.isfinite(found.r_hat)].astype(float)
    title = "R-hat of outputs"
    if not len(values):
        return figure(title, Html(""), "No output moved: there is no R-hat.")
    over = float(np.mean(values > _AGREED))
    words = (
        f"{over:.0%} of {len(values)} outputs are above {_AGREED}; the worst is "
        f"{number(values.max())}, the median {number(float(np.median(values)))}."
    )
    x = axis_of([values, [1.0, _AGREED]], "R-hat")
    edges = np.linspace(x.low, x.high, _NUM_BARS + 1)
    counts, _ = np.histogram(values, edges)
    y = axis_of([counts], "outputs", low=0.0)
    chart = Chart(sheet.ids, title, words, x=x, y=y)
    chart.bars(edges, counts)
    chart.guide([_AGREED, _AGREED], [float(y.low), float(y.high)], label=f"{_AGREED}")
    return figure(title, chart.html(), words)


def _effective(sheet: Sheet, found: ChainRecord) -> Html:
    bulk = np.sort(found.ess_bulk[np.isfinite(found.ess_bulk)].astype(float))
    tail = np.sort(found.ess_tail[np.isfinite(found.ess_tail)].astype(float))
    title = "Effective sample sizes"
    if not len(bulk) or not len(tail):
        return figure(title, Html(""), "No output moved: there are none.")
    words = (
        f"Bulk from {number(float(bulk[0]), 3)} to {number(float(bulk[-1]), 3)}, tail "
        f"from {number(float(tail[0]), 3)} to {number(float(tail[-1]), 3)}."
    )
    chart = Chart(
        sheet.ids,
        title,
        words,
        x=axis_of([[0, 1]], "share of outputs, the least first"),
        y=axis_of([bulk, tail], "independent draws", low=0.0),
    )
    for style, (name, values) in enumerate((("bulk", bulk), ("tail", tail))):
        xs = np.linspace(0, 1, len(values)) if len(values) > 1 else np.array([0.5])
        chart.line(xs, values, style=style, label=name)
    return figure(title, chart.html(), words)


def _trace(sheet: Sheet, found: ChainRecord, which: int) -> Html:
    values = found.traces[which].astype(float)
    label = found.labels[which]
    name = f"Trace {which + 1}"
    return _lines(
        sheet, found, name, values, f"{label[0].upper()}{label[1:]}.", "output"
    )


def _energy(sheet: Sheet, found: ChainRecord) -> Html:
    words = "Negative log density of position and momentum, of each sample."
    if found.energy.shape[1] >= 4 and "E-BFMI" not in found.by_chain:
        words = (
            "Negative log density of the position, estimated from the batch of each "
            "sample's step: there is no E-BFMI, which would be of that noise."
        )
    values = found.energy.astype(float)
    return _lines(sheet, found, "Energy", values, words, "nats")


def _lines(
    sheet: Sheet,
    found: ChainRecord,
    title: str,
    values: np.ndarray,
    words: str,
    unit: str,
) -> Html:
    samples = found.every * np.arange(1, values.shape[1] + 1)
    means = values.mean(axis=1)
    chart = Chart(
        sheet.ids,
        title,
        f"{words} {len(values)} chains.",
        x=axis_of([samples], "sample", low=0.0),
        y=axis_of([values], unit),
    )
    for style, chain in enumerate(values):
        label = f"chain {style + 1}" if len(values) <= 6 else None
        chart.line(samples, chain, style=style, label=label, is_thin=True)
    rows = [
        [f"{i + 1}", number(float(mean)), number(float(chain.std()))]
        for i, (mean, chain) in enumerate(zip(means, values, strict=True))
    ]
    caption = f"{words} Chains that agree cannot be told apart."
    columns = ["chain", "mean", "deviation"]
    return figure(title, chart.html(), caption, columns=columns, rows=rows)
