"""How mkdocstrings reads our packages: `from ._x import X as X` is an export."""

import griffe


class Exports(griffe.Extension):
    """Write down the `__all__` that our `__init__.py` files leave out.

    And warn, which fails a strict build, of what they export without a docstring.
    ruff's rules pass over files whose names start with an underscore: all of ours.
    """

    def on_package(self, *, pkg: griffe.Module, **kwargs) -> None:
        """Go through the folders of our package, once all of it is loaded."""
        del kwargs
        folders = [pkg] if pkg.name == "ornstein" else []
        while folders:
            folder = folders.pop()
            folders += [m for m in folder.modules.values() if m.is_init_module]
            exports = {
                name: member.final_target
                for name, member in folder.members.items()
                if member.is_alias and not name.startswith("_")
            }
            folder.exports = list(exports)
            for name, target in exports.items():
                _warn_of_silence(f"{folder.path}.{name}", target)


def _warn_of_silence(path: str, target: griffe.Object) -> None:
    if (target.is_class or target.is_function) and not target.has_docstring:
        griffe.logger.warning(f"{path} has no docstring")
    if not target.is_class:
        return
    # A method that its base documents says nothing new.
    inherited = {name for base in target.mro() for name in _documented(base)}
    for name, method in target.functions.items():
        if not (name.startswith("_") or method.has_docstring or name in inherited):
            griffe.logger.warning(f"{path}.{name} has no docstring")


def _documented(base: griffe.Class) -> list[str]:
    return [name for name, method in base.functions.items() if method.has_docstring]
