"""Towers by their bytes, and what can be asked of them."""

from __future__ import annotations

import pytest

from mqis.wire.errors import WireError
from mqis.wire.guid import Guid
from mqis.wire.rpc.interfaces import NDR20, NDR64, SyntaxId
from mqis.wire.rpc.tower import TCP_PROTOCOLS, Floor, Tower

DSCOMM = SyntaxId(Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8"), 1)
EXAMPLE = bytes.fromhex(
    "0500 1300 0d807adf7798f2d011835800a024c480a80100 0200 0000"
    "1300 0d045d888aeb1cc9119fe808002b1048600200 0200 0000"
    "0100 0b 0200 0000  0100 07 0200 0839  0100 09 0400 c000020a"
)


def test_the_tower_of_an_interface_on_tcp() -> None:
    assert len(EXAMPLE) == 75
    tower = Tower.tcp(DSCOMM, 2105, "192.0.2.10")
    assert tower.to_bytes() == EXAMPLE
    assert Tower.from_bytes(EXAMPLE) == tower


def test_what_a_tower_tells() -> None:
    tower = Tower.from_bytes(EXAMPLE)
    assert (tower.interface, tower.transfer) == (DSCOMM, NDR20)
    assert tower.protocols == TCP_PROTOCOLS
    assert (tower.port, tower.address) == (2105, "192.0.2.10")


def test_versions_stand_on_either_side() -> None:
    syntax = SyntaxId(DSCOMM.uuid, 0x0102, 0x0304)
    tower = Tower.from_bytes(Tower.tcp(syntax, 1, "0.0.0.0", NDR64).to_bytes())
    assert (tower.interface, tower.transfer) == (syntax, NDR64)


def test_a_pipe_s_tower_is_read_and_has_no_port() -> None:
    pipe = Tower(
        (
            Floor.of_syntax(DSCOMM),
            Floor.of_syntax(NDR20),
            Floor(b"\x0b", bytes(2)),
            Floor(b"\x0f", b"\\pipe\\name\0"),
            Floor(b"\x11", b"HOST\0"),
        )
    )
    read = Tower.from_bytes(pipe.to_bytes())
    assert read == pipe
    assert read.protocols == (0x0B, 0x0F, 0x11)
    assert (read.port, read.address) == (None, None)


@pytest.mark.parametrize("floors", [(), (Floor(b"", b""),), (Floor(b"\x0d", b"\0\0"),)], ids=repr)
def test_a_tower_that_names_nothing(floors: tuple[Floor, ...]) -> None:
    tower = Tower.from_bytes(Tower(floors).to_bytes())
    assert (tower.interface, tower.transfer, tower.port, tower.address) == (None,) * 4


def test_a_port_is_found_right_below_the_syntaxes() -> None:
    """Also in a tower that leaves out the floor of the connection-oriented protocol."""
    syntax = Floor(b"\x0d" + bytes(18), b"\0\0")
    tower = Tower((syntax, syntax, Floor(b"\x07", b"\x07\x09")))
    assert tower.port == 1801


def test_more_floors_than_a_tower_has() -> None:
    with pytest.raises(WireError, match="at most 6 floors, not 7"):
        Tower.from_bytes(Tower((Floor(b"\x0b", b""),) * 7).to_bytes())


def test_bytes_after_the_last_floor() -> None:
    with pytest.raises(WireError, match="after the end") as caught:
        Tower.from_bytes(EXAMPLE + b"\0")
    assert caught.value.offset == 75


@pytest.mark.parametrize(("port", "address"), [(-1, "1.2.3.4"), (65536, "1.2.3.4"), (1, "nowhere")])
def test_no_such_port_or_address(port: int, address: str) -> None:
    with pytest.raises(ValueError, match=r"port|nowhere"):
        Tower.tcp(DSCOMM, port, address)
