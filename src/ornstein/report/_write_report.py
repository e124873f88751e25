"""The report of runs: one page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from .._files import write_atomically
from ._run_record import RunRecord, read_run
from .page import Html, Ids, document, joined, tag
from .sections import (
    Section,
    Sheet,
    calibration,
    card,
    chains,
    choice,
    comparison,
    diagnosis,
    evaluated,
    examples,
    lead,
    risk,
    scores,
    training,
    uncertainty,
)

SECTIONS: tuple[Callable[[Sheet], Section | None], ...] = (
    scores,
    diagnosis,
    chains,
    calibration,
    risk,
    uncertainty,
    examples,
    evaluated,
    training,
    card,
)
"""What a report of a run has, in its order; `None` where one does not apply."""


def write_report(
    runs: str | Path | Sequence[str | Path],
    path: str | Path,
    *,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Write the report of one run, or of several side by side, as one HTML file.

    The file needs no network and runs no code. It is made of what the folders keep, and
    is the same for the same folders. A run of before, which keeps no test rows,
    predicts them again if its data are still there; the page says what is missing.

    Args:
        runs: folders of `ornstein train` or `ornstein sample`.
        path: of the file.
        say: takes a line where test rows are predicted again, which takes a while.

    Returns:
        The path.

    Example:
        ```python
        from ornstein.report import write_report

        write_report(["runs/a", "runs/b"], "comparison.html")
        ```

    Raises:
        FileNotFoundError: if a folder is no run, or one that is not finished.
        ValueError: for no runs, one that is given twice, or a damaged file.
    """
    folders = [runs] if isinstance(runs, str | Path) else list(runs)
    places = [Path(folder).resolve() for folder in folders]
    if not folders:
        raise ValueError("There is no run to report: give the folder of one or more.")
    for place, folder in zip(places, folders, strict=True):
        if places.count(place) > 1:
            raise ValueError(f"{folder} is given twice: give each run once.")
    records = [read_run(folder, say=say) for folder in folders]
    try:
        page = html_report(records)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        named = " or ".join(map(str, folders))
        raise ValueError(
            f"A file of {named} (result.json, evaluation.json, config.json, "
            f"metrics.jsonl) is damaged or of another version ({type(e).__name__}: "
            f"{e}): put it back, or judge the run again with `ornstein evaluate`."
        ) from e
    path = Path(path)
    write_atomically(path, page.encode())
    return path


def html_report(records: Sequence[RunRecord]) -> str:
    """The page of runs.

    Args:
        records: of one run or more.
    """
    ids = Ids()
    ids("main")
    if len(records) == 1:
        return _of_one(records[0], ids)
    return _of_several(records, ids)


def _of_one(record: RunRecord, ids: Ids) -> str:
    sheet = Sheet(record, ids)
    contents, parts = [], []
    for section in _sections(sheet):
        id_ = ids(section.title)
        contents.append((id_, section.title))
        parts.append(_section(section, id_, sheet.level))
    title = f"{record.name}: {record.result.get('model')} on {_data(record)}"
    header = joined([tag("h1", title), lead(sheet)])
    return document(title, header, contents, joined(parts))


def _of_several(records: Sequence[RunRecord], ids: Ids) -> str:
    names = unique_names(records)
    sheets = [Sheet(record, ids, level=3) for record in records]
    side_by_side = comparison(sheets, names)
    first = ids(side_by_side.title)
    contents = [(first, side_by_side.title)]
    parts = [_section(side_by_side, first, 2)]
    for name, sheet in zip(names, sheets, strict=True):
        id_ = ids(name)
        contents.append((id_, name))
        told = [
            _section(section, ids(f"{name} {section.title}"), sheet.level)
            for section in _sections(sheet)
        ]
        heading = tag("h2", name, id=f"{id_}-heading")
        parts.append(
            tag(
                "section",
                heading,
                lead(sheet),
                *told,
                id=id_,
                aria_labelledby=f"{id_}-heading",
            )
        )
    title = f"{len(records)} runs side by side"
    words = tag("p", ", ".join(names))
    header = joined([tag("h1", title), words, choice(sheets, names)])
    return document(title, header, contents, joined(parts))


def unique_names(records: Sequence[RunRecord]) -> list[str]:
    """Names of runs: their folders', or paths where two are called alike.

    Args:
        records: of the runs.
    """
    names = [record.name for record in records]
    return [
        name if names.count(name) == 1 else str(record.path)
        for name, record in zip(names, records, strict=True)
    ]


def _sections(sheet: Sheet) -> list[Section]:
    found = (section(sheet) for section in SECTIONS)
    return [section for section in found if section is not None]


def _section(section: Section, id_: str, level: int) -> Html:
    heading = tag(f"h{level}", section.title, id=f"{id_}-heading")
    return tag(
        "section",
        heading,
        section.content,
        id=id_,
        aria_labelledby=f"{id_}-heading",
    )


def _data(record: RunRecord) -> str:
    data = str(record.result.get("data", "data"))
    return Path(data).name if "/" in data and Path(data).suffix else data
