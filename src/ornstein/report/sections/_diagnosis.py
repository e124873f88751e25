"""What the diagnosis found."""

import re

from ..page import joined, tag
from ._base import Section, Sheet, note


def diagnosis(sheet: Sheet) -> Section:
    """Each finding, in the diagnosis' own words.

    Args:
        sheet: of the run.
    """
    found = sheet.record.result.get("diagnosis")
    if found is None:
        text = (
            "Chains are judged by whether they agree, below; the diagnosis is of "
            "posteriors that were trained."
            if "kernel" in sheet.record.result
            else "The run was not diagnosed."
        )
        return Section("Diagnosis", note(text))
    if not found:
        return Section(
            "Diagnosis",
            note(
                "None of its checks found a fault. They know some faults of "
                "posteriors, by test rows like the training rows; of other rows they "
                "say nothing."
            ),
        )
    parts = [
        tag(
            "div",
            sheet.heading(str(finding.get("name", "finding"))),
            tag("p", *_with_code(str(finding.get("message", "")))),
            class_="finding",
        )
        for finding in found
        if isinstance(finding, dict)
    ]
    return Section("Diagnosis", joined(parts))


def _with_code(text: str) -> list:
    """Flags and quoted code as code."""
    pieces = re.split(r"(`[^`]+`|--[a-z][a-z-]*(?: [\w.-]*\d[\w.-]*)?)", text)
    return [
        tag("code", piece.strip("`")) if i % 2 else piece
        for i, piece in enumerate(pieces)
    ]
