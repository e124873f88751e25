"""Every public name has a reference page, and words on it.

A page `::: ornstein.room` shows what the room's `__init__.py` exports and documents
(`docs/exports.py`); what has no docstring is left out without a word.
"""

import ast
import operator
import re
from pathlib import Path

import pytest
from source_code import Source, read

import ornstein

PACKAGE = Path(ornstein.__path__[0])
DOCS = Path(__file__).parents[1] / "docs"
NAV = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")

# Rooms of the program, which nobody imports from: what it takes is in its `--help`.
OF_THE_PROGRAM = {"agreement", "cli", "exactness", "studies"}


def rooms(root: Path) -> dict[str, Source]:
    """The public modules by their names, and the package itself."""
    found = {}
    for source in read(root).values():
        name = source.module.removeprefix(root.name).lstrip(".")
        if not name.startswith("_") and "." not in name and name not in OF_THE_PROGRAM:
            found[source.module] = source
    return found


def names_of(source: Source) -> list[str]:
    """What a room exports, other rooms apart."""
    if source.path.name == "__init__.py":
        imports = [i for i in source.imports if i.name and i.module != source.module]
        return [i.asname for i in imports if not i.asname.startswith("_")]
    kinds = (ast.ClassDef, ast.FunctionDef)
    found = [node.name for node in source.tree.body if isinstance(node, kinds)]
    return [name for name in found if not name.startswith("_")]


def words_on(root: Path, module: str, name: str) -> str | None:
    """The docstring of a name where it is defined: below an assignment for a value."""
    source = read(root)[module]
    for i in source.imports:
        if i.asname == name and i.name and i.module.split(".")[0] == root.name:
            return words_on(root, i.module, i.name)
    for node, after in zip(
        source.tree.body, [*source.tree.body[1:], None], strict=True
    ):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            if "overload" in map(ast.unparse, node.decorator_list):
                continue
            return ast.get_docstring(node)
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets += [node.target] if isinstance(node, ast.AnnAssign) else []
        if name in map(ast.unparse, targets):
            is_text = isinstance(after, ast.Expr) and isinstance(
                after.value, ast.Constant
            )
            return str(after.value.value) if is_text else None
    raise LookupError(f"{module} does not define {name}")


@pytest.mark.parametrize("module", rooms(PACKAGE))
def test_every_public_name_is_on_its_page(module: str):
    """Catches a room without a page, and a name without words (88 were seen)."""
    page = DOCS / "reference" / f"{module.split('.')[-1]}.md"
    assert f"::: {module}\n" in page.read_text(encoding="utf-8")
    assert f"reference/{page.name}\n" in NAV
    names = names_of(rooms(PACKAGE)[module])
    silent = [name for name in names if not words_on(PACKAGE, module, name)]
    assert names
    assert not silent, f"{module}: no docstring for {silent}"


def test_a_silent_name_is_found(tmp_path: Path):
    """The checker above, on what it must find."""
    root = tmp_path / "planted"
    names = "loud as loud, value as value, told as told"
    files = {
        "__init__.py": f"from .room import {names}",
        "room/__init__.py": f"from ._a import {names}",
        "room/_a.py": 'def loud():\n    """Words."""\n'
        'value = 1\ntold = 2\n"""Words."""',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    assert set(rooms(root)) == {"planted", "planted.room"}
    found = {n: words_on(root, "planted", n) for n in ("loud", "value", "told")}
    assert found == {"loud": "Words.", "value": None, "told": "Words."}


def test_every_argument_says_something():
    """Catches `potential: likewise.`, which sends readers to the line above."""
    found = []
    for source in read(PACKAGE).values():
        text = source.path.read_text(encoding="utf-8")
        found += re.findall(r"(?m)^ +\w+: (?:likewise|see above|ditto)\.$", text)
    assert not found, found


def test_every_page_is_in_the_navigation():
    """Catches a page that nobody finds; decisions (`adr/`) are read on GitHub."""
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    listed = set(re.findall(r"^\s+- (\S+\.md)$", NAV, flags=re.MULTILINE))
    assert {page for page in pages if not page.startswith("adr/")} == listed


PAGES = [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md"), DOCS.parent / "CONTRIBUTING.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_named_in_the_guide_are_there(page: Path):
    """Catches a page that still names `experiments/` (`tests/test_x.py` was seen)."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"(?<![\w/.])((?:[\w.]+/)+_*\w+\.py)\b", text)
    found = [PACKAGE, DOCS.parent]
    gone = [name for name in named if not any((at / name).is_file() for at in found)]
    assert not gone, gone


def test_architecture_names_every_room():
    """Catches a room that nobody is told of."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    missing = [name for name in folders | modules if f"`{name}`" not in text]
    assert not missing, missing


def test_guide_says_what_a_subclass_gives():
    """Catches a contract that has changed (`AbstractPathKL` gave "one step's")."""
    text = (DOCS / "guide" / "extending.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| .* \| `orn\.([\w.]+)` \| (.*) \|$", text, flags=re.MULTILINE
    )
    assert len(rows) == 9
    for path, given in rows:
        base = operator.attrgetter(path)(ornstein)
        wanted = set(base.__abstractmethods__) | base.__abstractvars__
        wanted |= base.__abstractclassvars__
        assert wanted == set(re.findall(r"`([a-z_]+)`", given)), path


def test_elbo_takes_twelve_files():
    """The table of the page that answers it: no more, and each of them there."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    answer = text.split("## How is the SDE-BNN's ELBO computed?")[1]
    named = re.findall(r"^\| \d+ \| `(\S+?)` \|", answer, flags=re.MULTILINE)
    assert 8 < len(set(named)) <= 12
    assert all((PACKAGE / name).is_file() for name in named)
