"""Values of attributes: read and written back, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.activedirectory import codecs
from mqis.protocol.activedirectory.codecs import AttributeCodec
from mqis.wire.guid import Guid
from mqis.wire.ldap.names import DistinguishedName, NamePart
from mqis.wire.propvariant import Value
from mqis.wire.security.sid import Sid

CODECS = {name: codec for name, codec in vars(codecs).items() if isinstance(codec, AttributeCodec)}
GUIDS = st.binary(min_size=16, max_size=16).map(Guid)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
NAMES = TEXT.map(lambda text: str(DistinguishedName((NamePart("CN", text), NamePart("DC", "x")))))
VALUES: dict[str, st.SearchStrategy[Value]] = {
    "FLAG": st.integers(0, 1),
    "ANY_FLAG": st.integers(0, 1),
    "UNSIGNED": st.integers(0, 0xFFFFFFFF),
    "UNSIGNED_16": st.integers(0, 0xFFFF),
    "SIGNED_16": st.integers(-0x8000, 0x7FFF),
    "PRIVACY": st.integers(0, 2),
    "SYSTEM": st.sampled_from([0, 0x100, 0x200, 0x300, 0x400, 0x500]),
    "STUB": st.integers(0, 1),
    "VERSION": st.sampled_from([3, 200]),
    "TEXT": TEXT,
    "GUID": GUIDS,
    "ANY_GUID": GUIDS,
    "GUIDS": st.lists(GUIDS, min_size=1, max_size=4, unique=True).map(tuple),
    "OCTETS": st.binary(min_size=1),
    "NAME": NAMES,
    "NAMES": st.lists(NAMES, min_size=1, max_size=4).map(tuple),
    "SID": st.builds(Sid, st.integers(0, 9), st.tuples(st.integers(0, 9))).map(Sid.to_bytes),
    "TIME": st.integers(0, 0x7FFFFFFF),
}


def test_every_codec_is_tried() -> None:
    assert VALUES.keys() == CODECS.keys()


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@pytest.mark.req("MQDSSM-2.2.2-05", "MQDSSM-2.2.2-06", "MQDSSM-2.2.2-07")
def test_written_and_read_back_is_the_same(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])
    assert CODECS[name].decode(CODECS[name].encode(value)) == value


@pytest.mark.parametrize("name", VALUES)
@given(values=st.lists(st.binary(max_size=20), min_size=1, max_size=3).map(tuple))
def test_arbitrary_values_are_one_error_or_a_value(name: str, values: tuple[bytes, ...]) -> None:
    try:
        CODECS[name].decode(values)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("codec", "value", "octets"),
    [
        pytest.param("FLAG", 1, (b"TRUE",), marks=pytest.mark.req("MQDSSM-2.2.2-05")),
        pytest.param("FLAG", 7, (b"FALSE",), marks=pytest.mark.req("MQDSSM-2.2.2-05")),
        pytest.param(
            "UNSIGNED", 0x80000000, (b"-2147483648",), marks=pytest.mark.req("MQDSSM-2.2.2-05")
        ),
        pytest.param("UNSIGNED", 0xFFFFFFFF, (b"-1",), marks=pytest.mark.req("MQDSSM-2.2.2-06")),
        pytest.param("TEXT", "", (), marks=pytest.mark.req("MQDSSM-2.2.2-08")),
        pytest.param("OCTETS", b"", (), marks=pytest.mark.req("MQDSSM-2.2.2-08")),
        pytest.param(
            "GUID", Guid.parse("a1b2c3d4-0001-0002-0304-05060708090a"),
            (bytes.fromhex("d4c3b2a1010002000304" + "05060708090a"),),
            marks=pytest.mark.req("MQDSSM-2.2.2-07"),
        ),
        pytest.param(
            "GUIDS", (Guid.NULL, Guid.NULL), (bytes(16),), marks=pytest.mark.req("MQDSSM-2.2.2-10")
        ),
        pytest.param(
            "TIME", 86_400, (b"19700102000000.0Z",), marks=pytest.mark.req("MQDSSM-3.1.6.4.1.2-04")
        ),
        pytest.param("PRIVACY", 2, (b"2",), marks=pytest.mark.req("MQDSSM-3.1.6.1.2.4-01")),
        pytest.param("SYSTEM", 0x500, (b"1280",), marks=pytest.mark.req("MQDSSM-3.1.6.1.1.4-01")),
        pytest.param("VERSION", 3, (b"3",), marks=pytest.mark.req("MQDSSM-3.1.6.4.3.2-01")),
    ],
)  # fmt: skip
def test_written_values(codec: str, value: Value, octets: tuple[bytes, ...]) -> None:
    assert CODECS[codec].encode(value) == octets


@pytest.mark.parametrize(
    ("codec", "octets", "value"),
    [
        pytest.param("FLAG", (b"FALSE", b"TRUE"), 1, marks=pytest.mark.req("MQDSSM-2.2.2-11")),
        pytest.param("STUB", (b"0", b"5"), 1, marks=pytest.mark.req("MQDSSM-2.2.2-11")),
        ("UNSIGNED", (b"4294967295",), 0xFFFFFFFF),
        ("SIGNED_16", (b"99999",), 0x7FFF),
        ("UNSIGNED_16", (b"-1",), 0),
        pytest.param("SYSTEM", (b"7",), 0, marks=pytest.mark.req("MQDSSM-3.1.6.1.1.4-01")),
        *(pytest.param("SYSTEM", (b"%d" % number,), number,
                       marks=pytest.mark.req("MQDSSM-3.1.6.1.1.4-01"))
          for number in (0, 0x100, 0x200, 0x300, 0x400, 0x500)),
        pytest.param("VERSION", (b"201",), 200, marks=pytest.mark.req("MQDSSM-3.1.6.4.3.2-01")),
        pytest.param("VERSION", (b"4",), 3, marks=pytest.mark.req("MQDSSM-3.1.6.4.3.2-01")),
        pytest.param(
            "TIME", (b"20390101000000.0Z",), 0x7FFFFFFF,
            marks=pytest.mark.req("MQDSSM-3.1.6.11.1-03"),
        ),
        pytest.param(
            "TIME", (b"20240102030405Z",), 1_704_164_645,
            marks=pytest.mark.req("MQDSSM-3.1.6.11.1-03"),
        ),
        ("TIME", (b"19600101000000.0Z",), 0),
        ("TEXT", (b"one", b"two"), "one"),
    ],
)  # fmt: skip
def test_read_values(codec: str, octets: tuple[bytes, ...], value: Value) -> None:
    assert CODECS[codec].decode(octets) == value


@pytest.mark.parametrize(
    ("codec", "octets"),
    [
        ("FLAG", (b"1",)), ("FLAG", (b"true",)), ("UNSIGNED", (b"0x10",)),
        ("UNSIGNED", (b"4294967296",)), ("UNSIGNED", (b"1", b"2")),
        pytest.param("PRIVACY", (b"3",), marks=pytest.mark.req("MQDSSM-2.2.2-09")),
        ("TEXT", (b"\xff",)), ("TEXT", (b"a\0b",)),
        pytest.param("GUID", (b"short",), marks=pytest.mark.req("MQDSSM-2.2.2-09")),
        pytest.param("GUIDS", (b"short",), marks=pytest.mark.req("MQDSSM-2.2.2-09")),
        ("SID", (b"\x01",)), ("TIME", (b"20241301000000.0Z",)), ("TIME", (b"yesterday",)),
    ],
)  # fmt: skip
def test_refused_values(codec: str, octets: tuple[bytes, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        CODECS[codec].decode(octets)


@pytest.mark.parametrize(
    "codec", ["UNSIGNED", "SIGNED_16", "TEXT", "GUID", "GUIDS", "OCTETS", "TIME"]
)
def test_a_value_of_another_type(codec: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        CODECS[codec].encode(None)
