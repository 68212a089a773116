"""The checked cursor and its counterpart."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import MqisError, WireError
from mqis.wire.guid import Guid
from mqis.wire.reader import Reader
from mqis.wire.writer import Writer

INTEGERS: list[tuple[str, int, int, int]] = [
    ("u8", 1, 0, 0xFF),
    ("u16", 2, 0, 0xFFFF),
    ("u32", 4, 0, 0xFFFFFFFF),
    ("u64", 8, 0, 0xFFFFFFFFFFFFFFFF),
    ("i8", 1, -0x80, 0x7F),
    ("i16", 2, -0x8000, 0x7FFF),
    ("i32", 4, -0x80000000, 0x7FFFFFFF),
    ("i64", 8, -0x8000000000000000, 0x7FFFFFFFFFFFFFFF),
]


#: Those that are written too.
WRITTEN = INTEGERS[:3]


def read(kind: str, reader: Reader) -> int:
    method: Callable[[], int] = getattr(reader, kind)
    return method()


def write(kind: str, writer: Writer, value: int) -> None:
    method: Callable[[int], None] = getattr(writer, kind)
    method(value)


def unterminated(units: int) -> bytes:
    return "x".encode("utf-16-le") * units


class TestIntegers:
    @pytest.mark.parametrize(("kind", "size", "low", "high"), INTEGERS)
    def test_bytes_come_least_significant_first(
        self, kind: str, size: int, low: int, high: int
    ) -> None:
        data = bytes(range(1, size + 1))
        reader = Reader(data)
        value = read(kind, reader)
        assert value == int.from_bytes(data, "little")
        assert reader.offset == size
        if (kind, size, low, high) in WRITTEN:
            writer = Writer()
            write(kind, writer, value)
            assert writer.getvalue() == data

    @pytest.mark.parametrize(("kind", "size", "low", "high"), INTEGERS)
    def test_both_ends_of_the_range_are_read(
        self, kind: str, size: int, low: int, high: int
    ) -> None:
        data = b"".join(end.to_bytes(size, "little", signed=low < 0) for end in (low, high))
        reader = Reader(data)
        assert (read(kind, reader), read(kind, reader)) == (low, high)

    @pytest.mark.parametrize(("kind", "size", "low", "high"), WRITTEN)
    def test_the_ends_of_the_range_and_not_beyond(
        self, kind: str, size: int, low: int, high: int
    ) -> None:
        writer = Writer()
        write(kind, writer, low)
        write(kind, writer, high)
        reader = Reader(writer.getvalue())
        assert (read(kind, reader), read(kind, reader)) == (low, high)
        for outside in (low - 1, high + 1):
            with pytest.raises(ValueError, match="does not fit"):
                write(kind, writer, outside)
        assert len(writer) == 2 * size

    @pytest.mark.parametrize(("kind", "size", "low", "high"), INTEGERS)
    def test_one_byte_too_few(self, kind: str, size: int, low: int, high: int) -> None:
        reader = Reader(bytes(10 + size - 1), offset=10)
        with pytest.raises(WireError) as caught:
            read(kind, reader)
        assert caught.value.offset == 10
        assert caught.value.reason == f"{kind} needs {size} bytes, {size - 1} left"
        assert reader.offset == 10


class TestReaderBounds:
    @pytest.mark.parametrize(("offset", "end"), [(-1, None), (4, None), (0, 4), (2, 1), (0, -1)])
    def test_a_window_outside_the_data_is_local_misuse(self, offset: int, end: int | None) -> None:
        with pytest.raises(ValueError, match="is not inside 3 bytes"):
            Reader(b"abc", offset, end)

    def test_a_window_hides_what_surrounds_it(self) -> None:
        reader = Reader(b"abcdef", 2, 4)
        assert reader.remaining == 2
        assert reader.bytes(2) == b"cd"
        with pytest.raises(WireError) as caught:
            reader.u8()
        assert caught.value.offset == 4

    def test_a_negative_size_never_moves_back(self) -> None:
        # A length field minus its own header can turn negative in a decoder.
        reader = Reader(b"abcdef", 4)
        with pytest.raises(WireError):
            reader.bytes(-1)
        with pytest.raises(WireError):
            reader.sub(-1)
        assert reader.offset == 4

    def test_bytes_name_what_is_missing(self) -> None:
        reader = Reader(b"ab")
        with pytest.raises(WireError, match="Certificate needs 3 bytes, 2 left at offset 0"):
            reader.bytes(3, "Certificate")
        assert reader.bytes(0) == b""
        assert reader.bytes(2) == b"ab"

    def test_sub_is_restricted_and_skipped(self) -> None:
        reader = Reader(b"abcdef", 1)
        part = reader.sub(3)
        assert reader.offset == 4
        assert reader.u8() == ord("e")
        assert part.remaining == 3
        assert part.bytes(3) == b"bcd"
        with pytest.raises(WireError) as caught:
            part.u8()
        assert caught.value.offset == 4, "offsets are those of the whole buffer"

    def test_sub_cannot_reach_outside_its_parent(self) -> None:
        parent = Reader(b"abcdef", 1, 4)
        with pytest.raises(WireError, match="part needs 4 bytes, 3 left at offset 1"):
            parent.sub(4)
        assert parent.offset == 1

    def test_sub_of_a_sub(self) -> None:
        inner = Reader(b"abcdef").sub(5).sub(2)
        assert inner.bytes(2) == b"ab"
        with pytest.raises(WireError):
            inner.u8()

    def test_expect_end(self) -> None:
        reader = Reader(b"abc")
        reader.u8()
        with pytest.raises(WireError, match="2 bytes after the end of the key at offset 1"):
            reader.expect_end("the key")
        reader.bytes(2)
        reader.expect_end("the key")

    def test_error_is_about_here_unless_told(self) -> None:
        reader = Reader(b"abc", 2)
        assert reader.error("bad").offset == 2
        assert reader.error("bad", 1).offset == 1

    def test_guid(self) -> None:
        raw = bytes(range(16))
        assert Reader(raw).guid() == Guid(raw)
        with pytest.raises(WireError, match="GUID needs 16 bytes, 15 left"):
            Reader(raw[:15]).guid()


class TestCount:
    def test_count_within_limit_and_bytes(self) -> None:
        reader = Reader(b"\x02\x00\x00\x00abcd")
        assert reader.count(2, 2, "items") == 2
        assert reader.offset == 4

    def test_count_over_the_limit(self) -> None:
        data = b"\0\x03\x00\x00\x00" + bytes(100)
        with pytest.raises(WireError, match="items: 3 items, at most 2 are allowed") as caught:
            Reader(data, 1).count(2, 1, "items")
        assert caught.value.offset == 1

    def test_count_that_the_bytes_cannot_hold(self) -> None:
        data = b"\x03\x00\x00\x00" + bytes(11)
        with pytest.raises(WireError, match="3 items do not fit in 11 bytes") as caught:
            Reader(data).count(100, 4, "items")
        assert caught.value.offset == 0
        assert Reader(data + b"\0").count(100, 4, "items") == 3

    def test_count_looks_at_the_window_only(self) -> None:
        with pytest.raises(WireError, match="do not fit in 0 bytes"):
            Reader(b"\x01\x00\x00\x00abcd", 0, 4).count(10, 1, "items")

    def test_truncated_count(self) -> None:
        with pytest.raises(WireError, match="u32 needs 4 bytes, 3 left"):
            Reader(bytes(3)).count(10, 1, "items")


class TestUtf16z:
    def test_the_terminator_is_eaten_and_left_out(self) -> None:
        reader = Reader(b"H\0Q\0\0\0X")
        assert reader.utf16z(10) == "HQ"
        assert reader.offset == 6

    def test_empty(self) -> None:
        reader = Reader(b"\0\0")
        assert reader.utf16z(0) == ""
        assert reader.offset == 2

    @pytest.mark.parametrize("text", ["aĀb", "ĀĀ", "aĀĀ", "xĀ", "Ā"])
    def test_a_zero_pair_across_two_units_does_not_end_it(self, text: str) -> None:
        # "a" is 61 00 and U+0100 is 00 01: the two zeros between them stand at an odd place.
        data = text.encode("utf-16-le") + b"\0\0"
        reader = Reader(b"?" + data, 1)
        assert reader.utf16z(10) == text
        assert reader.offset == 1 + len(data)

    def test_the_odd_pair_right_before_the_terminator(self) -> None:
        reader = Reader(b"a\0\0\0")
        assert reader.utf16z(5) == "a"
        assert reader.offset == 4

    def test_exactly_the_limit(self) -> None:
        assert Reader(unterminated(5) + b"\0\0").utf16z(5) == "xxxxx"

    def test_one_over_the_limit(self) -> None:
        reader = Reader(b"?" + unterminated(6) + b"\0\0", 1)
        with pytest.raises(WireError, match="name is longer than 5 characters") as caught:
            reader.utf16z(5, "name")
        assert caught.value.offset == 1
        assert reader.offset == 1

    @pytest.mark.parametrize("data", [b"", b"\0", b"x\0", b"x\0\0", b"\0x\0"])
    def test_no_terminator(self, data: bytes) -> None:
        reader = Reader(data)
        with pytest.raises(WireError, match="name has no terminating zero") as caught:
            reader.utf16z(5, "name")
        assert caught.value.offset == 0

    def test_a_terminator_outside_the_window_does_not_count(self) -> None:
        with pytest.raises(WireError, match="no terminating zero"):
            Reader(b"x\0\0\0", 0, 3).utf16z(5)

    @pytest.mark.parametrize("units", ["00d8", "00dc", "6100 ffdf 6200", "00dc 00d8", "3dd8 00de"])
    def test_surrogates_pass_paired_or_not(self, units: str) -> None:
        data = bytes.fromhex(units) + b"\0\0"
        text = Reader(data).utf16z(10)
        writer = Writer()
        writer.utf16z(text)
        assert writer.getvalue() == data

    def test_a_pair_becomes_one_character(self) -> None:
        assert Reader(bytes.fromhex("3dd8 00de 0000")).utf16z(10) == "\U0001f600"
        assert Reader(bytes.fromhex("3dd8 0000")).utf16z(10) == chr(0xD83D)

    @given(units=st.lists(st.integers(1, 0xFFFF)))
    def test_any_units_survive(self, units: list[int]) -> None:
        data = struct.pack(f"<{len(units)}H", *units) + b"\0\0"
        writer = Writer()
        writer.utf16z(Reader(data).utf16z(len(units)))
        assert writer.getvalue() == data

    def test_a_zero_inside_cannot_be_written(self) -> None:
        writer = Writer()
        with pytest.raises(ValueError, match="zero character"):
            writer.utf16z("a\0b")
        assert len(writer) == 0


class TestWriter:
    def test_appends_in_order(self) -> None:
        writer = Writer()
        writer.u8(1)
        writer.bytes(b"ab")
        writer.guid(Guid(bytes(range(16))))
        writer.utf16z("Q")
        assert writer.getvalue() == b"\x01ab" + bytes(range(16)) + b"Q\0\0\0"
        assert len(writer) == 23

    def test_getvalue_is_a_copy(self) -> None:
        writer = Writer()
        writer.u8(1)
        before = writer.getvalue()
        writer.u8(2)
        assert before == b"\x01"

    def test_patch(self) -> None:
        writer = Writer()
        writer.bytes(b"abcdefgh")
        writer.patch_u32(2, 0x01020304)
        assert writer.getvalue() == b"ab\x04\x03\x02\x01gh"
        writer.patch_u32(4, 0xFFFFFFFF)
        assert writer.getvalue() == b"ab\x04\x03\xff\xff\xff\xff"

    @pytest.mark.parametrize("offset", [-4, -1, 1, 4])
    def test_patch_stays_inside_what_was_written(self, offset: int) -> None:
        writer = Writer()
        writer.bytes(b"abcd")
        with pytest.raises(ValueError, match=f"offset {offset}"):
            writer.patch_u32(offset, 0)
        assert writer.getvalue() == b"abcd"

    @pytest.mark.parametrize("value", [-1, 1 << 32])
    def test_patch_refuses_what_does_not_fit(self, value: int) -> None:
        writer = Writer()
        writer.bytes(b"abcd")
        with pytest.raises(ValueError, match="does not fit in 4 bytes"):
            writer.patch_u32(0, value)
        assert writer.getvalue() == b"abcd"


class TestWireError:
    def test_says_what_and_where(self) -> None:
        error = WireError("too short", 7)
        assert str(error) == "too short at offset 7"
        assert isinstance(error, MqisError)

    def test_survives_pickling(self) -> None:
        # Executors of the pipeline raise it in other processes.
        error = pickle.loads(pickle.dumps(WireError("too short", 7)))
        assert (type(error), error.reason, error.offset) == (WireError, "too short", 7)


@given(data=st.binary(max_size=64), script=st.lists(st.integers(0, 12), max_size=20))
def test_no_sequence_of_reads_leaves_the_data_or_raises_anything_else(
    data: bytes, script: list[int]
) -> None:
    reader = Reader(data)
    verbs: list[Callable[[], object]] = [
        *(lambda kind=kind: read(kind, reader) for kind, *_ in INTEGERS),
        reader.guid,
        lambda: reader.bytes(reader.u8()),
        lambda: reader.sub(reader.u8()),
        lambda: reader.count(16, 2, "items"),
        lambda: reader.utf16z(8),
    ]
    for step in script:
        before = at = reader.offset
        try:
            verbs[step]()
        except WireError as error:
            at = error.offset
        assert before <= at <= len(data)
        assert before <= reader.offset <= len(data)
