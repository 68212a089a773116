"""Dataclasses of options that many commands share.

    @dataclass(frozen=True)
    class Place:
        tables: TablesOption = Path("tables")
        master: MasterOption = "local[*]"

    @spread
    def audit(*, place: Place, json: JsonOption = False) -> None: ...

is for typer a command with the options --tables, --master and --json.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with each dataclass parameter replaced by one option per field."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[Parameter] = []
    plain = signature(command)
    for parameter in plain.parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint) and isinstance(hint, type):
            groups[parameter.name] = hint
            parameters += _options(hint)
        else:
            parameters.append(parameter.replace(annotation=hint))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            chosen = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**chosen)
        command(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = plain.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _options(group: type[Any]) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]
