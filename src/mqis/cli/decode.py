"""``mqis decode``: decodes the bytes of a wire structure and shows them as a tree."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.tree import Tree

from mqis.cli.hexinput import read_input
from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, error_console, print_error, print_json, table
from mqis.views.presentation.plain import as_json
from mqis.wire.decoders import DECODERS, NamedDecoder
from mqis.wire.errors import MqisError, WireError

_BY_NAME = {decoder.name: decoder for decoder in DECODERS}


def _decoder(name: str) -> NamedDecoder:
    if name not in _BY_NAME:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


def decode(
    data: Annotated[
        str,
        typer.Argument(
            metavar="HEX|FILE|-",
            help="Hexadecimal or a hex dump; a file that holds that or raw bytes; - is stdin.",
            show_default=False,
        ),
    ],
    protocol: Annotated[
        NamedDecoder | None,
        typer.Option(
            "--protocol",
            "-p",
            parser=_decoder,
            metavar="NAME",
            help=f"The structure to decode: one of {', '.join(_BY_NAME)}. "
            "Default: all that accept the bytes.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Decode bytes. Exit status 1, with offset and reason, if they cannot be decoded."""
    octets = read_input(data)
    if not octets:
        raise MqisError("there are no bytes to decode")
    decoded, failed = _attempts(octets, DECODERS if protocol is None else (protocol,))
    if decoded:
        _show(decoded, json=json)
        return
    if json:
        print_json(_error_as_json(failed))
    if protocol is not None:
        error = failed[protocol.name]
        print_error(f"offset {error.offset}: {error.reason}")
    else:
        _show_failures(len(octets), failed)
    raise typer.Exit(1)


def _attempts(
    octets: bytes, decoders: tuple[NamedDecoder, ...]
) -> tuple[dict[str, object], dict[str, WireError]]:
    decoded: dict[str, object] = {}
    failed: dict[str, WireError] = {}
    for decoder in decoders:
        try:
            decoded[decoder.name] = decoder.decode(octets)
        except WireError as error:
            failed[decoder.name] = error
    return decoded, failed


def _show(decoded: dict[str, object], *, json: bool) -> None:
    if json:
        found = [{"protocol": name, "value": as_json(value)} for name, value in decoded.items()]
        print_json({"decoded": found})
        return
    for name, value in decoded.items():
        tree = Tree(cell(f"{name}: {_BY_NAME[name].summary}", "bold"))
        grow(tree, as_json(value))
        console().print(tree)


def _show_failures(size: int, failed: dict[str, WireError]) -> None:
    print_error(f"no decoder accepts these {size} bytes")
    made = table("protocol", "offset", "reason")
    for name, error in failed.items():
        made.add_row(name, str(error.offset), cell(error.reason))
    error_console().print(made)


def _error_as_json(failed: dict[str, WireError]) -> dict[str, object]:
    attempts = [
        {"protocol": name, "offset": error.offset, "reason": error.reason}
        for name, error in failed.items()
    ]
    return {"error": attempts[0] if len(attempts) == 1 else {"attempts": attempts}}


# --- the tree -------------------------------------------------------------------------------------


def grow(branch: Tree, value: Any) -> None:
    """Adds a JSON value to the tree, so that tree and JSON show the same."""
    if isinstance(value, dict):
        for key, item in value.items():
            _add(branch, f"{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _add(branch, f"[{index}]", item)
    else:
        branch.add(cell(_leaf(value)))


def _add(branch: Tree, name: str, value: Any) -> None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    label = cell(name, "cyan")
    if isinstance(value, dict | list):
        grow(branch.add(label), value)
    else:
        branch.add(label.append(": ").append_text(cell(_leaf(value), "default")))


def _leaf(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
