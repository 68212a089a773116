"""The realms of a keytab."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqis.protocol.authentication import AuthenticationError
from mqis.runtime.authentication.kerberos import realms_of
from tests.hostile.test_kerberos import keytab


def written(directory: Path, data: bytes, mode: int = 0o600) -> Path:
    path = directory / "server.keytab"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_realms_of_all_keys(tmp_path: Path) -> None:
    hole = struct.pack(">i", -8) + bytes(8)
    data = keytab("LAB", "LAB") + hole + keytab("OTHER.TEST")[2:]
    assert realms_of(written(tmp_path, data)) == {"LAB", "OTHER.TEST"}
    assert realms_of(written(tmp_path, b"\x05\x02", 0o640)) == frozenset()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x05\x01",
        b"\x05\x02" + struct.pack(">i", 1 << 30),
        b"\x05\x02" + struct.pack(">i", -(1 << 31)),
        b"\x05\x02" + struct.pack(">iHH", 4, 2, 9),
        keytab("LAB").replace(b"LAB", b"\xff\xff\xff"),
        b"\x05\x02" + bytes(1 << 20),
    ],
)
def test_what_is_no_keytab(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(AuthenticationError, match="keytab"):
        realms_of(written(tmp_path, data))


def test_one_that_is_not_there_and_one_that_others_may_change(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="cannot be read"):
        realms_of(tmp_path / "none")
    for mode in (0o604, 0o620, 0o602):
        with pytest.raises(AuthenticationError, match="chmod 600"):
            realms_of(written(tmp_path, keytab("LAB"), mode))
