"""The model card: what was learned from what, how, by which versions, where."""

from typing import Any

from ...recipe import Recipe, SampleRecipe, unread_options
from .._run_record import RunRecord
from ..page import Html, count, joined, key_values, number, tag
from ._base import Section, Sheet, note

_MOST_NAMES = 40
_MODEL = (
    ("model", "model"),
    ("model", "width"),
    ("model", "activation"),
    ("model", "sigma"),
    ("model", "start"),
    ("network", "network"),
    ("weights", "prior"),
    ("weights", "weight_scale"),
    ("weights", "num_members"),
    ("implicit", "num_components"),
    ("likelihood", "likelihood"),
    ("likelihood", "scale"),
    ("likelihood", "learn_scale"),
)
_TRAINING = (
    "epochs",
    "steps",
    "batch_size",
    "learning_rate",
    "optimiser",
    "schedule",
    "kl_warmup",
    "ema",
    "test_draws",
    "seed",
)


def card(sheet: Sheet) -> Section:
    """The model card.

    Args:
        sheet: of the run.
    """
    parts = [_data(sheet), _model(sheet), _provenance(sheet), _configuration(sheet)]
    parts += [note(sentence) for sentence in sheet.record.missing]
    return Section("Model card", joined(parts))


def _data(sheet: Sheet) -> Html:
    record, known = sheet.record, sheet.record.known
    rows: dict[str, Any] = {"name": str(record.result.get("data", ""))}
    if known is not None:
        rows["task"] = known.task
        shape = " \N{MULTIPLICATION SIGN} ".join(map(str, known.example_shape))
        rows[f"training {record.rows}"] = f"{len(known.train):,}"
        rows[f"test {record.rows}"] = f"{len(known.test):,}"
        rows["one input"] = f"{shape} numbers"
        if known.feature_names:
            rows["features"] = _names(known.feature_names)
        if known.class_names:
            rows["classes"] = _names(known.class_names)
        if known.target_names:
            rows["targets"] = _names(known.target_names)
        if known.source is not None:
            source = known.source
            rows["file" if len(source.paths) == 1 else "files"] = ", ".join(
                source.paths
            )
            rows["SHA-256"] = tag("code", source.sha256)
            columns = source.num_columns
            size = count(source.num_rows, "row")
            size += "" if columns is None else f", {count(columns, 'column')}"
            rows["read from it"] = size
        elif record.option("series", "time") is not None:  # a run of before
            rows["file"] = f"{known.name}; no fingerprint was kept"
        else:
            rows["file"] = "a data set that ornstein knows by name; no fingerprint"
    notes = [tag("li", text) for text in record.result.get("notes") or []]
    listed = tag("ul", *notes) if notes else None
    return joined([key_values("Data", rows), listed])


def _model(sheet: Sheet) -> Html:
    record, result = sheet.record, sheet.record.result
    sampling = record.config.get("sampling")
    rows: dict[str, Any] = {}
    unread = _unread(record)
    if isinstance(sampling, dict):
        own = sampling.get("sampling", {}).items()
        rows |= _plain({name: value for name, value in own if name not in unread})
        names = tuple(n for n in ("likelihood", "learn_scale") if n not in unread)
        rows |= _plain(sampling.get("likelihood", {}), names)
    else:
        for part, name in (*_MODEL, *(("training", name) for name in _TRAINING)):
            value = record.option(part, name)
            if value is not None and name not in unread:
                rows[name.replace("_", " ")] = _shown(value)
    weight = result.get("kl_weight")
    rows["KL weight"] = (
        "none: nothing here has a KL" if weight is None else _shown(weight)
    )
    if weight is not None and not record.climbed_bound:
        rows["KL weight"] = f"{number(weight)}: of the energy of a prior, if it has one"
    elif weight not in (None, 1):
        rows["KL weight"] = (
            f"{number(weight)}: what was trained is not the bound on the evidence"
        )
    for name, what in (
        ("objective", "objective"),
        ("weights", "weights judged"),
        ("num_parameters", "parameters"),
        ("num_epochs", "epochs trained"),
    ):
        value = result.get(name)
        if value is not None:
            rows[what] = f"{value:,}" if isinstance(value, int) else _shown(value)
    return key_values("Model and training", rows)


def _unread(record: RunRecord) -> frozenset[str]:
    """Options that the run passed over; none where its recipe is another version's."""
    config = record.config
    try:
        if isinstance(config.get("sampling"), dict):
            recipe: Recipe | SampleRecipe = SampleRecipe.from_json(config["sampling"])
        else:
            recipe = Recipe.from_json(config.get("recipe"))
        unread = unread_options(recipe)
    except (ValueError, KeyError):
        return frozenset()
    if record.task == "classification":
        return unread | {"scale", "learn_scale"}
    return unread


def _provenance(sheet: Sheet) -> Html:
    origin = sheet.record.result.get("provenance") or {}
    rows: dict[str, Any] = {}
    if "command" in origin:
        rows["command"] = tag("code", origin["command"])
    begun = origin.get("begun") or {}
    if begun.get("date"):
        rows["begun"] = begun["date"]
    if origin.get("resumed"):
        rows["resumed"] = count(len(origin["resumed"]), "time")
    for name, what in (
        ("seed", "seed"),
        ("device", "device"),
        ("commit", "commit"),
    ):
        if origin.get(name) is not None:
            rows[what] = _shown(origin[name])
    if origin.get("seconds") is not None:
        rows["seconds, all calls"] = number(origin["seconds"])
    seconds = sheet.record.result.get("train_seconds")
    if seconds is not None:
        rows["seconds of training"] = number(seconds, 3)
    versions = origin.get("versions") or {}
    if versions:
        rows["versions"] = ", ".join(f"{n} {v}" for n, v in versions.items())
    return key_values("Where it comes from", rows)


def _configuration(sheet: Sheet) -> Html:
    config = sheet.record.config
    groups = config.get("sampling") or config.get("recipe") or {}
    tables = [
        key_values(f"Options: {part}", _plain(options))
        for part, options in groups.items()
        if isinstance(options, dict)
    ]
    summary = "All options of the run, those too that this model does not read"
    return tag("details", tag("summary", summary), *tables)


def _plain(options: dict[str, Any], names: tuple[str, ...] = ()) -> dict[str, str]:
    return {
        name.replace("_", " "): _shown(value)
        for name, value in options.items()
        if value not in (None, [], ()) and (not names or name in names)
    }


def _names(names: Any) -> Any:
    shown = ", ".join(map(str, names[:_MOST_NAMES]))
    if len(names) <= _MOST_NAMES:
        return f"{len(names):,}: {shown}"
    return f"{len(names):,}: {shown}, \N{HORIZONTAL ELLIPSIS}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value)
