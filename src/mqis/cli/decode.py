"""``mqis decode``: decodes the bytes of a wire structure and shows them as a tree."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.tree import Tree

from mqis.cli.options import JsonOption
from mqis.cli.output import cell, console, error_console, print_error, print_json, table
from mqis.files import system_reason
from mqis.texts import shortened
from mqis.views.presentation.records import as_json
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


# --- Bytes as people paste them -------------------------------------------------------------------
# Hexadecimal with spaces or colons, a hex dump, a file, stdin.

# "0000  00 01 02", "00000000: 0001 0203  ..", "00000010 ..": an offset, then its bytes
_DUMP_LINE = re.compile(r"\s*([0-9A-Fa-f]{4,16})(:|[ \t]{2,}|\Z)(.*)")
_SEPARATORS = re.compile(r"0x|\\x|[\s:,;]", re.IGNORECASE)


def read_input(argument: str) -> bytes:
    """Reads stdin if ``-``, a file if there is one of that name, else the argument itself."""
    if argument == "-":
        return _of_content(sys.stdin.buffer.read())
    path = Path(argument)
    try:
        if path.is_file():
            return _of_content(path.read_bytes())
    except OSError as error:  # a name that is too long for a file is hexadecimal, perhaps
        if not path.name or len(argument) < 256:
            raise MqisError(f"{argument}: cannot be read: {system_reason(error)}") from error
    data = parse_hex(argument)
    if data is None:
        raise MqisError(f"{_short(argument)} is neither hexadecimal nor a file")
    return data


def _of_content(content: bytes) -> bytes:
    """Decodes content that is hexadecimal text, and returns any other content unchanged."""
    try:
        return parse_hex(content.decode("ascii")) or content
    except UnicodeDecodeError:
        return content


def parse_hex(text: str) -> bytes | None:
    """The bytes, or None if the text is something else."""
    return _of_dump(text) or _of_digits(_SEPARATORS.sub("", text))


def _of_digits(digits: str) -> bytes | None:
    try:
        return bytes.fromhex(digits) or None
    except ValueError:
        return None


def _of_dump(text: str) -> bytes | None:
    """Parses a hex dump; None unless each offset is right, which tells offsets from bytes."""
    data = b""
    for line in filter(str.strip, text.splitlines()):
        match = _DUMP_LINE.fullmatch(line)
        if match is None or int(match[1], 16) != len(data):
            return None
        shown = _without_text(match[3], colon=match[2] == ":")
        part = _of_digits("".join(shown.split())) if shown.strip() else b""
        if part is None:
            return None
        data += part
    return data or None


def _without_text(columns: str, *, colon: bool) -> str:
    """Removes the column of characters from a line of a dump.

    xxd puts a colon after the offset and two spaces before the characters; hexdump puts bars
    around them, Wireshark three spaces before them.
    """
    columns = columns.strip("\t ") if colon else columns.partition("|")[0].strip()
    return re.split(r"\s{2,}" if colon else r"\s{3,}", columns)[0]


def _short(text: str) -> str:
    return repr(shortened(text, 40))
