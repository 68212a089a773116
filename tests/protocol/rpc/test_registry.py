"""The endpoint map."""

from __future__ import annotations

import pytest

from mqis.protocol.rpc.endpoint_map import EndpointRegistry, Registration
from mqis.wire.guid import Guid
from mqis.wire.rpc.epmapper import Inquiry, VersionOption
from mqis.wire.rpc.interfaces import NDR20, SyntaxId
from mqis.wire.rpc.tower import Floor, Tower

UUID = Guid.parse("77df7a80-f298-11d0-8358-00a024c480a8")
OTHER = SyntaxId(Guid.parse("708cca10-9569-11d1-b2a5-0060977d8118"), 1)
OBJECT = Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a")
STRANGER = Guid.parse("ffffffff-0001-0002-0304-05060708090a")


def version(major: int, minor: int = 0) -> SyntaxId:
    return SyntaxId(UUID, major, minor)


def registry(*entries: Registration) -> EndpointRegistry:
    result = EndpointRegistry()
    for entry in entries:
        result.insert(entry)
    return result


V1, V12, V2 = (
    Registration(version(*v), 1000 + n, "10.0.0.1") for n, v in enumerate([(1, 0), (1, 2), (2, 0)])
)
FOR_OBJECT = Registration(version(1), 2000, "10.0.0.1", object=OBJECT)
ELSE = Registration(OTHER, 3000, "10.0.0.1")
ALL = registry(V1, V12, V2, FOR_OBJECT, ELSE)


def asked(syntax: SyntaxId, transfer: SyntaxId = NDR20) -> Tower:
    return Tower.tcp(syntax, 0, "0.0.0.0", transfer)


@pytest.mark.parametrize(
    ("wanted", "target", "found"),
    [
        (version(1), Guid.NULL, [V1, V12]),
        (version(1, 1), Guid.NULL, [V12]),
        (version(1, 3), Guid.NULL, []),
        (version(2), Guid.NULL, [V2]),
        (version(3), Guid.NULL, []),
        (version(1), OBJECT, [FOR_OBJECT, V1, V12]),
        (version(1), STRANGER, [V1, V12]),
        (OTHER, OBJECT, [ELSE]),
    ],
)
def test_map(wanted: SyntaxId, target: Guid, found: list[Registration]) -> None:
    assert list(ALL.map(asked(wanted), target)) == found


def test_map_only_over_tcp() -> None:
    below = Floor(b"\x0f", b"\\pipe\\x\0"), Floor(b"\x11", b"H\0")
    pipe = (*asked(version(1)).floors[:3], *below)
    assert list(ALL.map(Tower(pipe), Guid.NULL)) == []
    assert list(ALL.map(Tower(()), Guid.NULL)) == []
    assert list(ALL.map(Tower((Floor(b"", b""),) * 6), Guid.NULL)) == []


def test_the_tower_of_a_registration() -> None:
    assert V1.tower == Tower.tcp(version(1), 1000, "10.0.0.1", NDR20)


@pytest.mark.parametrize(
    ("option", "found"),
    [
        (VersionOption.ALL, [V1, V12, V2, FOR_OBJECT]),
        (VersionOption.COMPATIBLE, [V12]),
        (VersionOption.EXACT, []),
        (VersionOption.MAJOR_ONLY, [V1, V12, FOR_OBJECT]),
        (VersionOption.UP_TO, [V1, FOR_OBJECT]),
        (0, [V1, V12, V2, FOR_OBJECT]),
        (77, [V1, V12, V2, FOR_OBJECT]),
    ],
)
def test_lookup_by_interface(option: int, found: list[Registration]) -> None:
    by_interface = ALL.lookup(Inquiry.BY_INTERFACE, Guid.NULL, version(1, 1), option)
    assert list(by_interface) == found


@pytest.mark.parametrize(
    ("inquiry", "target", "interface", "found"),
    [
        (Inquiry.ALL, STRANGER, None, [V1, V12, V2, FOR_OBJECT, ELSE]),
        (Inquiry.BY_OBJECT, OBJECT, None, [FOR_OBJECT]),
        (Inquiry.BY_OBJECT, STRANGER, None, []),
        (Inquiry.BY_BOTH, OBJECT, version(1), [FOR_OBJECT]),
        (Inquiry.BY_BOTH, OBJECT, OTHER, []),
        (Inquiry.BY_INTERFACE, Guid.NULL, None, []),
    ],
)
def test_lookup(
    inquiry: int, target: Guid, interface: SyntaxId | None, found: list[Registration]
) -> None:
    assert list(ALL.lookup(inquiry, target, interface, VersionOption.ALL)) == found


def test_registering_again_replaces() -> None:
    moved = Registration(version(1), 1999, "10.0.0.2")
    changed = registry(V1, FOR_OBJECT, moved)
    assert list(changed.map(asked(version(1)), OBJECT)) == [FOR_OBJECT, moved]
    changed.insert(V1, replace=False)
    assert list(changed.map(asked(version(1)), Guid.NULL)) == [moved, V1]
    changed.delete(version(1))
    assert list(changed.map(asked(version(1)), OBJECT)) == [FOR_OBJECT]
