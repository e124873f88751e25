"""Rules of the house that no linter knows; each checker also meets its violation.

A checker reads the source of a package (a folder) and returns one sentence per
violation, so that the planted ones below can be small folders of their own.
"""

import ast
import builtins
import dis
import json
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from source_code import classes, read, unit_of

import ornstein

PACKAGE = Path(ornstein.__path__[0])

# Bottom first; the folder or file `_name` counts as `name`.
LAYERS = (
    (
        "types",
        "version",
        "lazy",
        "tree",
        "normals",
        "sentence",
        "kinds",
        "files",
        "memory",
        "mesh",
        "gather",
        "processes",
    ),
    ("data", "metrics"),
    ("sde", "nn", "likelihood", "prior", "network"),
    ("functions", "potential"),
    ("train", "prediction", "sgmcmc", "mcmc"),
    ("sampling", "evaluation", "diagnosis", "plot", "interop"),
    ("recipe", "report", "torch"),
    ("sklearn", "comparison", "sweep"),
    ("agreement", "exactness", "studies", "cli", "main"),
)
HEIGHT = {unit: height for height, layer in enumerate(LAYERS) for unit in layer}

# Modules that may be imported inside a function, and why.
LATE_IMPORTS = {
    "arviz": "extra `arviz`: seconds to import, and only its own users need it",
    "datasets": "extra `vision`: heavy, and needed only for sets from the hub",
    "huggingface_hub": "extra `vision`: likewise",
    "pandas": "half a second, and only tables need it",
    "ray": "extra `ray`: seconds to import, and only sweeps by Ray need it",
    "sklearn": "half of the time that `import ornstein` would take",
    "tensorboardX": "imports torch where there is one: seconds",
}

# Modules that belong to some layers only.
HOME_OF = {
    "argparse": {"cli"},
    "matplotlib": {"plot", "report"},
    "torch": {"torch"},
    "tyro": {"cli"},
}

# Modules whose strings have flags that are no option's, and why.
OTHER_FLAGS = {
    "recipe._provenance": "git's own",
    "report.page._style": "variables of a style sheet",
}

MAX_LINES = 400
MAX_FILES = 20  # of one folder
MAX_SHARE = 0.16  # of all lines, of one room

# Private modules that other rooms may import from all the same, and why. A name that
# two rooms need stands in its room's face.
PRIVATE_IMPORTS: dict[tuple[str, str], str] = {}


def check_layers(root: Path) -> Iterator[str]:
    """Down or, without a cycle, sideways; never up."""
    beside: dict[str, set[str]] = {}
    for source in read(root).values():
        if not source.unit:
            continue
        if source.unit not in HEIGHT:
            yield f"{source.module} belongs to no layer: add it to LAYERS"
            continue
        for i in source.imports:
            if i.module.split(".")[0] != root.name:
                continue
            target = unit_of(i.module) or (i.name or "").strip("_")
            if target not in HEIGHT:
                yield f"{source.where(i.line)} imports from the top or from no layer"
            elif HEIGHT[target] > HEIGHT[source.unit]:
                yield f"{source.where(i.line)} imports upwards: {target}"
            elif target != source.unit:
                beside.setdefault(source.unit, set()).add(target)
    for unit in beside:
        seen, todo = set(), [unit]
        while todo:
            new = beside.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        if unit in seen:
            yield f"{unit} imports itself by way of its neighbours"


def check_late_imports(root: Path) -> Iterator[str]:
    for source in read(root).values():
        for i in source.imports:
            if i.late and i.module.split(".")[0] not in LATE_IMPORTS:
                yield f"{source.where(i.line)} imports {i.module} inside a function"


def check_abstract_or_final(root: Path) -> Iterator[str]:
    for cls in classes(root).values():
        for base in cls.bases:
            if not base.may_have_subclasses:
                yield f"{cls.where} subclasses the concrete {base.node.name}"
        is_abstract = cls.methods(abstract=True) or any(
            isinstance(n, ast.AnnAssign) and "Abstract" in ast.unparse(n.annotation)
            for n in cls.node.body
            if "AbstractVar" in ast.unparse(n) or "AbstractClassVar" in ast.unparse(n)
        )
        if is_abstract and not cls.may_have_subclasses:
            yield f"{cls.where} is abstract: its name must start with Abstract"
        for base in cls.ancestors():
            # Equinox runs every __check_init__ of a family.
            implemented = base.methods(abstract=False) - {"__check_init__"}
            if again := implemented & cls.methods(abstract=False):
                yield f"{cls.where} overrides {sorted(again)} of {base.node.name}"
    for source in read(root).values():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "super":
                yield f"{source.where(node.lineno)} calls super()"


def check_init_files(root: Path) -> Iterator[str]:
    """A docstring, `from module import Name as Name`, and `__all__`.

    The top has them in `if TYPE_CHECKING:`, and imports them when they are asked for.
    """
    for source in read(root).values():
        if source.path.name != "__init__.py":
            continue
        is_lazy = source.module == root.name and any(
            i.asname == "_lazy_names" for i in source.imports
        )
        for position, node in enumerate(source.tree.body):
            is_docstring = position == 0 and ast.get_docstring(source.tree) is not None
            is_export = isinstance(node, ast.ImportFrom) and all(
                node.level in (0, 1) and alias.asname == alias.name
                for alias in node.names
            )
            is_all = isinstance(node, ast.Assign) and (
                [ast.unparse(t) for t in node.targets] == ["__all__"]
            )
            if not (is_docstring or is_export or is_all or is_lazy):
                yield f"{source.where(node.lineno)} is more than a re-export"


def check_homes(root: Path) -> Iterator[str]:
    """Printing, leaving and parsing arguments live in cli, figures in plot."""
    banned = {"print", "input", "exit", "quit", "breakpoint", "sys.exit", "os._exit"}
    for source in read(root).values():
        for i in source.imports:
            home = HOME_OF.get(i.module.split(".")[0])
            if home is not None and source.unit not in home:
                yield f"{source.where(i.line)} imports {i.module} outside {home}"
        if source.unit in {"cli", "main"}:
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call):
                is_banned = ast.unparse(node.func) in banned
            elif isinstance(node, ast.Raise):
                is_banned = "SystemExit" in ast.unparse(node)
            else:
                continue
            if is_banned:
                yield f"{source.where(node.lineno)} prints, asks or exits outside cli"


def check_flags(root: Path) -> Iterator[str]:
    """Only cli names options as --flags, but for commands named `ornstein ...` whole.

    Docstrings may: those of options are the command line's help.
    """
    for source in read(root).values():
        where = source.module.removeprefix(f"{root.name}.")
        if source.unit == "cli" or where in OTHER_FLAGS:
            continue
        docs = {id(n.value) for n in ast.walk(source.tree) if isinstance(n, ast.Expr)}
        inside = {
            id(part)
            for node in ast.walk(source.tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(source.tree):
            if id(node) in docs | inside:
                continue
            text = re.sub(r"`ornstein [^`]*`", "", text_of(node))
            if re.search(r"(^|[^\w-])--[a-z{]", text):
                yield f"{source.where(node.lineno)} names a --flag: use a Sentence"


def text_of(node: ast.AST) -> str:
    """What a string says, with {} for what it is filled with; empty for others."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if is_text else ""


def check_sizes(root: Path) -> Iterator[str]:
    for source in read(root).values():
        num_lines = len(source.path.read_text(encoding="utf-8").splitlines())
        if num_lines > MAX_LINES:
            yield f"{source.module} has {num_lines} lines: more than {MAX_LINES}"


def check_rooms(root: Path) -> Iterator[str]:
    """No folder that one cannot see at a glance, and no room that is half the house."""
    lines: dict[str, int] = {}
    files: dict[Path, int] = {}
    for source in read(root).values():
        num_lines = len(source.path.read_text(encoding="utf-8").splitlines())
        lines[source.unit] = lines.get(source.unit, 0) + num_lines
        files[source.path.parent] = files.get(source.path.parent, 0) + 1
    for unit, num_lines in lines.items():
        share = num_lines / sum(lines.values())
        if share > MAX_SHARE:
            yield f"{unit} has {share:.1%} of the lines: more than {MAX_SHARE:.0%}"
    for folder, number in files.items():
        if number > MAX_FILES:
            yield f"{folder.relative_to(root.parent)} has {number} files"


def check_private_imports(root: Path) -> Iterator[str]:
    """A module `_x` of a package is for that package; others go by its face."""
    sources = read(root)
    found = set()
    for source in sources.values():
        for i in source.imports:
            module = f"{i.module}.{i.name}"
            module = module if module in sources else i.module
            parts = module.split(".")
            if parts[0] != root.name:
                continue
            for depth, part in enumerate(parts):
                home = ".".join(parts[:depth])
                if depth > 1 and part.startswith("_"):
                    if f"{source.module}.".startswith(f"{home}."):
                        continue
                    pair = (source.module, module)
                    found.add(pair)
                    if pair not in PRIVATE_IMPORTS:
                        yield f"{source.where(i.line)} imports from {module}: private"
                    break
    for pair in sorted(set(PRIVATE_IMPORTS) - found):
        yield f"{pair} is listed as a private import, and is none"


def check_circles(root: Path) -> Iterator[str]:
    """In no package do two files or folders need each other."""
    sources = read(root)
    beside: dict[str, dict[str, set[str]]] = {}
    for source in sources.values():
        own = source.module.split(".")
        if source.path.name == "__init__.py":
            continue  # a face names everything that it holds
        for i in source.imports:
            module = f"{i.module}.{i.name}"
            other = (module if module in sources else i.module).split(".")
            same = 0
            while same < min(len(own), len(other)) and own[same] == other[same]:
                same += 1
            if 0 < same < min(len(own), len(other)):
                package = beside.setdefault(".".join(own[:same]), {})
                package.setdefault(own[same], set()).add(other[same])
    for package, arrows in beside.items():
        for name in arrows:
            seen, todo = set(), [name]
            while todo:
                new = arrows.get(todo.pop(), set()) - seen
                seen |= new
                todo += new
            if name in seen:
                yield f"{package}: {name} needs itself by way of its neighbours"


def check_one_meaning(root: Path) -> Iterator[str]:
    """No public name of the package is both a module and a function."""
    top = read(root)[root.name]
    modules = {m.split(".")[1] for m in read(root) if m.count(".") == 1}
    for i in top.imports:
        is_module = i.module == root.name and i.name in modules
        if i.asname in modules and not is_module:
            yield f"{root.name}.{i.asname} is a module and a name of {i.module}"


# In a fresh interpreter: import what the package imports, so that what foreign
# packages do on import is not held against it, then look at what it does itself.
IMPORTING = """
import contextlib, importlib, json, logging, os, sys, warnings

import jax

foreign, package = json.loads(sys.argv[1]), sys.argv[2]
for name in foreign:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)


def state():
    names = sorted(logging.root.manager.loggerDict)
    loggers = [logging.root, *map(logging.getLogger, names)]
    return {
        "jax.config": repr(jax.config.values),
        "warnings.filters": repr(warnings.filters),
        "logging": repr([(l.name, l.level, l.handlers) for l in loggers if l.handlers]),
        "os.environ": repr(os.environ),
    }


before = state()
module = importlib.import_module(package)
for name in getattr(module, "__all__", ()):  # which it imports when it is asked
    getattr(module, name)
after = state()
changed = [name for name in before if before[name] != after[name]]
json.dump({"changed": changed, "modules": list(sys.modules)}, sys.stdout)
"""


def import_alone(package: str, foreign: list[str], path: Path) -> dict[str, list[str]]:
    program = [sys.executable, "-c", IMPORTING, json.dumps(foreign), package]
    done = subprocess.run(program, cwd=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_import_is_silent(root: Path) -> Iterator[str]:
    modules = import_alone(root.name, [], root.parent)["modules"]
    if "matplotlib" in modules:
        yield "importing the package imports matplotlib: seconds nobody asked for"
    foreign = [m for m in modules if m.split(".")[0] != root.name]
    for changed in import_alone(root.name, foreign, root.parent)["changed"]:
        yield f"importing the package changes {changed}"


LOOKED_UP = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
OF_MODULES = {*dir(builtins), "__file__", "__path__", "__annotations__"}
OF_MODULES |= {"__qualname__", "__module__"}  # which classes look up too


def check_names(root: Path) -> Iterator[str]:
    """Names that nobody gives: ruff and pyright would take jaxtyping's axes for such.

    Seen: an import that was forgotten, in a line that few calls come to.
    """
    for source in read(root).values():
        module = compile(source.tree, str(source.path), "exec")
        given = stored_in(module) | OF_MODULES
        for name in sorted(loaded_in(module) - given):
            yield f"{source.module} has no {name}, which it uses"


def stored_in(code: types.CodeType) -> set[str]:
    """Names that a module's own code gives, or a function's as `global`."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_NAME"}
    return own | {
        i.argval
        for part in all_codes(code)
        for i in dis.get_instructions(part)
        if i.opname == "STORE_GLOBAL"
    }


def loaded_in(code: types.CodeType) -> set[str]:
    """Names that are looked up in the module, but those that a class body gives."""
    found = set()
    for part in all_codes(code):
        steps = list(dis.get_instructions(part))
        own = {i.argval for i in steps if i.opname == "STORE_NAME"}
        loads = {i.argval for i in steps if i.opname in LOOKED_UP}
        found |= loads - own
    return found


def all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from all_codes(const)


CHECKERS = (
    check_names,
    check_layers,
    check_late_imports,
    check_abstract_or_final,
    check_init_files,
    check_homes,
    check_flags,
    check_sizes,
    check_rooms,
    check_private_imports,
    check_circles,
    check_one_meaning,
    check_import_is_silent,
)


@pytest.mark.parametrize("check", CHECKERS, ids=lambda check: check.__name__)
def test_package_keeps_to_the_house(check: Callable[[Path], Iterator[str]]):
    violations = sorted(check(PACKAGE))
    assert not violations, "\n" + "\n".join(violations)


def test_every_layer_has_its_members():
    """Catches a member of LAYERS that moved away (seen: `predict`)."""
    there = {source.unit for source in read(PACKAGE).values()}
    assert set(HEIGHT) <= there, set(HEIGHT) - there


ABSTRACT = "class AbstractA:\n    @abc.abstractmethod\n    def f(self): ...\n"
PLANTED = {
    "no name": (
        check_names,
        {"a.py": "class A:\n    b: int = 1\n    def f(self):\n        return Lost(b)"},
        "has no Lost, which",
    ),
    "up": (check_layers, {"sde/_a.py": "from ..train import fit"}, "upwards: train"),
    "up by name": (check_layers, {"data/_a.py": "from .. import sde"}, "upwards: sde"),
    "the top": (check_layers, {"cli/_a.py": "from .. import fit"}, "from the top"),
    "absolute": (check_layers, {"sde/_a.py": "import planted.cli"}, "upwards: cli"),
    "typing only": (
        check_layers,
        {"_types.py": "if TYPE_CHECKING:\n    from .nn import MLP"},
        "upwards: nn",
    ),
    "cycle": (
        check_layers,
        {"sde/_a.py": "from ..nn import b", "nn.py": "from .sde import a"},
        "sde imports itself",
    ),
    "no layer": (check_layers, {"utils.py": ""}, "belongs to no layer"),
    "late": (
        check_late_imports,
        {"sde/_a.py": "def f():\n    from ._b import c"},
        "planted.sde._b inside a function",
    ),
    "concrete base": (
        check_abstract_or_final,
        {"a.py": "class A: ...", "b.py": "from .a import A\nclass B(A): ..."},
        "subclasses the concrete A",
    ),
    "base by re-export": (
        check_abstract_or_final,
        {
            "a/_a.py": "class A: ...",
            "a/__init__.py": "from ._a import A as A",
            "b.py": "from . import a as q\nclass B(q.A[int]): ...",
        },
        "subclasses the concrete A",
    ),
    "abstract name": (
        check_abstract_or_final,
        {"a.py": ABSTRACT.replace("AbstractA", "A")},
        "must start with Abstract",
    ),
    "abstract field": (
        check_abstract_or_final,
        {"a.py": "class A:\n    x: eqx.AbstractVar[int]"},
        "must start with Abstract",
    ),
    "override": (
        check_abstract_or_final,
        {
            "a.py": ABSTRACT + "    def g(self): return 1\n"
            "class B(AbstractA):\n    def f(self): ...\n    def g(self): return 2"
        },
        r"overrides \['g'\] of AbstractA",
    ),
    "super": (
        check_abstract_or_final,
        {"a.py": "class A:\n    def f(self):\n        return super().f()"},
        "calls super",
    ),
    "code": (check_init_files, {"sde/__init__.py": "x = 1"}, "more than a re-export"),
    "renamed": (
        check_init_files,
        {"sde/__init__.py": "from diffrax import Euler as EulerMaruyama"},
        "more than a re-export",
    ),
    "no as": (check_init_files, {"__init__.py": "from .a import b"}, "more than"),
    "print": (check_homes, {"sde.py": "print(1)"}, "prints, asks or exits"),
    "exit": (check_homes, {"sde.py": "raise SystemExit(1)"}, "prints, asks or exits"),
    "figure": (check_homes, {"train.py": "import matplotlib.pyplot"}, "outside"),
    "flag": (
        check_flags,
        {"sde.py": "def f():\n    raise ValueError(f'give {1} --dt 0.1')"},
        "sde:2 names a --flag",
    ),
    "flag of a name": (
        check_flags,
        {"sde.py": "text = f'--{name} must be positive'"},
        "sde:1 names a --flag",
    ),
    "size": (check_sizes, {"a.py": "\n" * 401}, "has 401 lines"),
    "share": (
        check_rooms,
        {"sde/_a.py": "\n" * 84, "nn/_a.py": "\n" * 16},
        r"sde has 84\.0% of the lines",
    ),
    "crowd": (
        check_rooms,
        {f"sde/_{n}.py": "" for n in range(21)} | {"nn.py": "\n"},
        "sde has 21 files",
    ),
    "private": (
        check_private_imports,
        {"sde/_a.py": "from ..nn._b import c", "nn/_b.py": ""},
        r"_a:1 imports from planted\.nn\._b: private",
    ),
    "private sibling": (
        check_private_imports,
        {"nn/x/_a.py": "from ..y import _b", "nn/y/__init__.py": "", "nn/y/_b.py": ""},
        r"imports from planted\.nn\.y\._b: private",
    ),
    "circle": (
        check_circles,
        {
            "nn/x/_a.py": "from ..y import b",
            "nn/_c.py": "from .x import a",
            "nn/y/_b.py": "from .._c import c",
        },
        "planted.nn: x needs itself",
    ),
    "two meanings": (
        check_one_meaning,
        {"__init__.py": "from .sde import sde", "sde/__init__.py": ""},
        "planted.sde is a module and a name of planted.sde",
    ),
    "warnings": (
        check_import_is_silent,
        {"__init__.py": "import warnings\nwarnings.simplefilter('ignore')"},
        r"changes warnings\.filters",
    ),
    "config": (
        check_import_is_silent,
        {"__init__.py": "import jax\njax.config.update('jax_enable_x64', True)"},
        r"changes jax\.config",
    ),
    "logging": (
        check_import_is_silent,
        {"__init__.py": "import logging\nlogging.basicConfig()"},
        "changes logging",
    ),
    "matplotlib": (
        check_import_is_silent,
        {"__init__.py": "import matplotlib"},
        "imports matplotlib",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_checker_finds_a_planted_violation(case: str, tmp_path: Path):
    check, files, match = PLANTED[case]
    root = tmp_path / "planted"
    for name, text in ({"__init__.py": ""} | files).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    violations = "\n".join(check(root))
    assert re.search(match, violations), violations
