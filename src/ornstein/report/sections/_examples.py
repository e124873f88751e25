"""The test rows that are most certain, and least."""

import base64
from collections.abc import Sequence
from typing import Any

from ..page import Html, joined, table, tag
from ..rows import Example
from ._base import Section, Sheet, note


def examples(sheet: Sheet) -> Section | None:
    """Galleries of images, or tables of rows.

    Args:
        sheet: of the run.
    """
    rows = sheet.rows
    if rows is None or not rows.examples:
        return None
    by = "entropy" if rows.kind == "classes" else "width of the 90 % interval"
    parts: list[Html] = []
    for is_certain, title in ((True, "Most certain"), (False, "Least certain")):
        chosen = [one for one in rows.examples if one.is_certain == is_certain]
        parts.append(sheet.heading(title))
        if chosen and chosen[0].image:
            parts.append(_gallery(chosen, title))
        else:
            parts.append(_table(chosen, title, sheet))
    parts.append(
        note(
            f"By {by}, of {rows.num_rows:,} test rows, whose numbers count from 0. "
            "Certain and wrong is what to look at: a label may be wrong, too."
        )
    )
    return Section("Single test rows", joined(parts))


def _gallery(chosen: Sequence[Example], title: str) -> Html:
    items = []
    for one in chosen:
        data = base64.b64encode(one.image).decode()
        named = f"{_name(one)}: {one.truth}"
        guessed = f"guessed {one.guess}"
        items.append(
            tag(
                "li",
                tag("img", src=f"data:image/png;base64,{data}", alt=named),
                tag("div", _name(one)),
                tag("div", f"is {one.truth}"),
                _guess(one, guessed),
            )
        )
    return tag("ul", *items, class_="gallery", aria_label=f"{title} test images")


def _guess(one: Example, text: str) -> Html:
    if one.is_right is False:
        return tag("div", f"{text} (wrong)", class_="wrong")
    return tag("div", text)


def _table(chosen: Sequence[Example], title: str, sheet: Sheet) -> Html:
    rows: list[list[Any]] = []
    has_features = any(one.features for one in chosen)
    for one in chosen:
        row = [_name(one), one.truth, _guess(one, one.guess)]
        if has_features:
            row.append(", ".join(f"{name} {value}" for name, value in one.features))
        rows.append(row)
    is_classes = sheet.rows is not None and sheet.rows.kind == "classes"
    guess = "guess" if is_classes else "median (90 % interval)"
    columns = ["test row", "truth", guess]
    text = [1, 2] if is_classes else []
    if has_features:
        columns.append("furthest from the training rows' mean")
        text.append(3)
    return table(f"{title} test rows", columns, rows, is_text=text)


def _name(one: Example) -> str:
    return one.name if one.name else f"row {one.row}"
