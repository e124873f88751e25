"""Write the README and `docs/results` from their templates and `results/*.json`.

`make pages` after a change to either; `tests/test_pages.py` holds the pages to it. A
template (`NAME.md.in`) is Markdown with two things of its own:

- `{{ digits.nll | .3f }}`: an expression, and a format for numbers. `digits` is
  `results/digits.json`, `benchmarks.sde` a file of a folder; `docs/records.py` has what
  can be asked of them and `docs/tables.py` what can be called. What is not a number yet
  (a null, or a key asked for by `maybe`) is shown as "–".
- `{% require digits.kl_weight == 1 %}`, a line: what the sentences below it rest on. A
  file that falsifies them is refused, before it makes a page lie.
"""

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docs.records import Files, shown
from docs.tables import calls

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
SUFFIX = ".md.in"


def render(template: str, names: Mapping[str, Any]) -> str:
    """The page of a template.

    Args:
        template: its text.
        names: what expressions may use.

    Raises:
        ValueError: naming an expression that has no value, or does not hold.
    """

    def evaluate(expression: str) -> Any:
        try:
            return eval(expression, {"__builtins__": {}}, names)
        except Exception as error:
            raise ValueError(f"`{expression.strip()}`: {error!r}") from error

    def require(match: re.Match) -> str:
        if not evaluate(match[1]):
            raise ValueError(f"`{match[1]}` holds no more: rewrite what rests on it")
        return ""

    def fill(match: re.Match) -> str:
        expression, bar, form = match[1].rpartition(" | ")
        value = evaluate((expression if bar else form).strip())
        return shown(value, form.strip() if bar else "")

    text = re.sub(r"^\{% require (.*) %\}\n", require, template, flags=re.MULTILINE)
    return _filled(re.sub(r"\{\{(.*?)\}\}", fill, text, flags=re.DOTALL))


def _filled(text: str) -> str:
    """Paragraphs broken anew at 88 columns: numbers are shorter than expressions."""
    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    for number, part in enumerate(parts):
        if not part.startswith("```"):
            blocks = [_wrapped(block) for block in part.split("\n\n")]
            parts[number] = re.sub(r"\n{3,}", "\n\n", "\n\n".join(blocks))
    return "".join(parts)


def _wrapped(block: str) -> str:
    lines = block.strip("\n")
    if re.match(r"[|#!<\-\s]|```|\Z", lines):
        return block
    wrapped = textwrap.fill(lines, 88, break_long_words=False, break_on_hyphens=False)
    return block.replace(lines, wrapped)


def templates() -> list[Path]:
    """All of them."""
    return sorted((ROOT / "docs").rglob(f"*{SUFFIX}"))


def page_of(template: Path) -> Path:
    """Where its page lies: beside it, or the README at the top."""
    name = template.name.removesuffix(SUFFIX) + ".md"
    return ROOT / name if name == "README.md" else template.with_name(name)


def pages(results: Path = RESULTS) -> Iterator[tuple[Path, str]]:
    """Every page and its text.

    Args:
        results: the folder of files.

    Raises:
        ValueError: naming the template, and what is wrong with it.
    """
    names = Files(results, calls(results))
    for template in templates():
        source = template.relative_to(ROOT).as_posix()
        try:
            text = render(template.read_text(encoding="utf-8"), names)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        title, _, rest = text.partition("\n")
        note = f"<!-- Written by `make pages` from {source}: change that. -->"
        yield page_of(template), f"{title}\n\n{note}\n{rest}"


if __name__ == "__main__":
    try:
        for path, text in pages():
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"Wrote {path.relative_to(ROOT)}\n")
    except ValueError as error:
        sys.exit(str(error))
