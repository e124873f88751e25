"""A package's source as the convention tests see it: its imports and its classes."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Import(NamedTuple):
    module: str  # absolute and dotted
    name: str | None  # of `from module import name`
    asname: str  # what the importing module calls it
    line: int
    late: bool  # inside a function


class Source(NamedTuple):
    path: Path
    module: str  # absolute and dotted; a package's is its folder's
    tree: ast.Module
    imports: tuple[Import, ...]

    def where(self, line: int) -> str:
        return f"{self.module}:{line}"

    @property
    def unit(self) -> str:
        """The layer's member this file belongs to; empty for the top `__init__`."""
        return unit_of(self.module)


def unit_of(module: str) -> str:
    return module.split(".")[1].strip("_") if "." in module else ""


def parse_imports(tree: ast.Module, package: list[str]) -> Iterator[Import]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                asname = alias.asname or alias.name.split(".")[0]
                yield Import(alias.name, None, asname, node.lineno, id(node) in late)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                asname = alias.asname or alias.name
                yield Import(module, alias.name, asname, node.lineno, id(node) in late)


@functools.cache
def read(root: Path) -> dict[str, Source]:
    sources = {}
    for path in sorted(root.rglob("*.py")):
        parts = [root.name, *path.relative_to(root).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        parts = parts[:-1] if is_package else parts
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = parse_imports(tree, parts if is_package else parts[:-1])
        module = ".".join(parts)
        sources[module] = Source(path, module, tree, tuple(imports))
    return sources


class Class(NamedTuple):
    module: str
    node: ast.ClassDef
    bases: tuple["Class", ...]  # those of the package
    foreign: tuple[str, ...]  # the names of the others

    @property
    def where(self) -> str:
        return f"{self.module}:{self.node.lineno} ({self.node.name})"

    @property
    def may_have_subclasses(self) -> bool:
        name = self.node.name.lstrip("_")
        # Exceptions form families so that callers can catch one.
        is_exception = name.endswith(("Error", "Warning", "Exception"))
        return name.startswith("Abstract") or self.is_protocol or is_exception

    @property
    def is_protocol(self) -> bool:
        return "Protocol" in self.foreign

    def ancestors(self) -> Iterator["Class"]:
        for base in self.bases:
            yield base
            yield from base.ancestors()

    def methods(self, *, abstract: bool) -> set[str]:
        return {
            n.name
            for n in self.node.body
            if isinstance(n, ast.FunctionDef)
            and any("abstract" in ast.unparse(d) for d in n.decorator_list) == abstract
        }


def classes(root: Path) -> dict[tuple[str, str], Class]:
    sources = read(root)
    nodes = {
        (source.module, node.name): node
        for source in sources.values()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
    }

    def find(module: str, name: str) -> Class | None:
        """The class that `name` (dotted: by way of a module) means in `module`."""
        if (module, name) in nodes:
            return build(module, name)
        head, _, rest = name.partition(".")
        for i in sources[module].imports if module in sources else ():
            if i.asname == head and i.name is not None:
                submodule = f"{i.module}.{i.name}"
                if rest and submodule in sources:
                    return find(submodule, rest)
                return None if rest else find(i.module, i.name)
        return None

    @functools.cache
    def build(module: str, name: str) -> Class:
        node = nodes[module, name]
        own, foreign = [], []
        for expression in node.bases:
            while isinstance(expression, ast.Subscript):  # a generic base
                expression = expression.value
            text = ast.unparse(expression)
            base = find(module, text)
            foreign.append(text.split(".")[-1]) if base is None else own.append(base)
        return Class(module, node, tuple(own), tuple(foreign))

    return {key: build(*key) for key in nodes}
