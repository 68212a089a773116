"""DirectoryServiceServerArray (MS-MQSD 2.2.3): ``10nt4pec,11psc2`` and a NUL, in UTF-16LE.

The ABNF counts bytes, but separator and terminator are 16-bit units: U+2C00 and U+0100 contain the
bytes of a comma and of half a NUL, yet they are letters of a name (E-MQSD-12).
"""

from __future__ import annotations

from mqis.wire.errors import WireError
from mqis.wire.mqds.serverlist import ServerSpec, format_server_specs, parse_server_specs
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

_NUL = b"\0\0"


def decode_servers(reader: Reader) -> tuple[ServerSpec, ...]:
    """Decodes the whole ``reader``: one entry or more, terminated by a single NUL."""
    start = reader.offset
    size = reader.remaining
    if size % 2:
        raise reader.error(f"a server array has an even number of bytes, not {size}")
    text = reader.utf16z(size // 2, "DirectoryServiceServerArray")
    reader.expect_end("DirectoryServiceServerArray")
    try:
        return parse_server_specs(text)
    except WireError as error:  # its offset counts characters, some of which have two units
        before = text[: error.offset].encode("utf-16-le", "surrogatepass")
        raise WireError(error.reason, start + len(before)) from None


def encode_servers(writer: Writer, servers: tuple[ServerSpec, ...]) -> None:
    writer.utf16z(format_server_specs(servers))


def array_size(servers: tuple[ServerSpec, ...]) -> int:
    """The encoded size in bytes, with the NUL."""
    text = format_server_specs(servers)
    return len(text.encode("utf-16-le", "surrogatepass")) + len(_NUL)
