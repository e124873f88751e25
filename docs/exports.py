"""How mkdocstrings reads our packages: `from ._x import X as X` is an export."""

import re

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
                if target.is_class and pkg.name == target.package.name:
                    _show_fields_as_arguments(target)
                _warn_of_silence(f"{folder.path}.{name}", target)


def _show_fields_as_arguments(module: griffe.Class) -> None:
    """Give an Equinox module the `__init__` that dataclasses write at run time."""
    classes = [*reversed(module.mro()), module]
    is_module = any("Module" in str(base) for c in classes for base in c.bases)
    is_abstract = module.name.startswith("Abstract")  # nobody constructs it
    if is_abstract or not is_module or any("__init__" in c.members for c in classes):
        return
    fields = {"self": griffe.Parameter("self")}
    for attribute in (a for c in classes for a in c.attributes.values()):
        annotation, value = str(attribute.annotation), str(attribute.value)
        if (
            "instance-attribute" in attribute.labels
            and not {"AbstractVar", "ClassVar"} & set(re.split(r"\W", annotation))
            and "init=False" not in value
        ):
            default = attribute.value
            if "field(" in value:  # equinox.field(converter=..., default=...)
                default = "..." if "default" in value else None
            fields[attribute.name] = griffe.Parameter(
                attribute.name,
                annotation=attribute.annotation,
                kind=griffe.ParameterKind.positional_or_keyword,
                default=default,
            )
    parameters = griffe.Parameters(*fields.values())
    module.set_member("__init__", griffe.Function("__init__", parameters=parameters))


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
