"""The kind of a command's parameter, as typer has parsed it from the annotation.

Typer 0.29 replaced the types of click by descriptors of its own, and needs pydantic, which adds a
fifth of a second to every command. The lock therefore installs 0.28, and both are understood here.
"""

from __future__ import annotations

from typing import Any

#: The names of click's types.
_PATHS = frozenset({"path", "file", "directory"})


def is_path(parameter: Any) -> bool:
    """True for a parameter whose value is a ``Path``, or several."""
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:
        return parameter.type.name in _PATHS
    return "Path" in str(descriptor.annotation)


def choices(parameter: Any) -> tuple[str, ...]:
    """The words that may be given; empty if it takes other values too."""
    kind = getattr(parameter, "type_descriptor", None) or parameter.type
    return tuple(str(getattr(each, "value", each)) for each in getattr(kind, "choices", None) or ())
