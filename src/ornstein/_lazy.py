"""Names of a package that are imported when they are first asked for (PEP 562)."""

import ast
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple


class LazyNames(NamedTuple):
    """Names of a package, and where they are from.

    Attributes:
        package: its name.
        modules: of each public name the module; `None` for one that is itself a module
            of the package.
    """

    package: str
    modules: Mapping[str, str | None]

    def get(self, name: str) -> Any:
        """Import a name: the package's `__getattr__`.

        Args:
            name: that was asked for.

        Raises:
            AttributeError: if the package has no such name.
        """
        if name not in self.modules:
            raise AttributeError(f"module {self.package!r} has no attribute {name!r}")
        module = self.modules[name]
        if module is None:
            return importlib.import_module(f"{self.package}.{name}")
        return getattr(importlib.import_module(module), name)


def lazy_names(package: str, source: str) -> LazyNames:
    """The names that a package imports for type checkers alone.

    What they see and what a program gets are thus one text.

    Args:
        package: its name.
        source: of its `__init__.py`, with one `if TYPE_CHECKING:` that has nothing but
            `from .module import Name as Name`.
    """
    modules: dict[str, str | None] = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If):
            for node in block.body:
                assert isinstance(node, ast.ImportFrom)
                where = None if node.module is None else f"{package}.{node.module}"
                modules |= {alias.name: where for alias in node.names}
    return LazyNames(package, modules)
