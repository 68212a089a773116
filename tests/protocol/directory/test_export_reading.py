"""Exports line by line: limits, damage, and lines that the caller does not want."""

from __future__ import annotations

from io import BytesIO

import pytest

from mqis.protocol.directory import export_reading
from mqis.protocol.directory.export_format import ExportError
from mqis.protocol.directory.export_lines import exported_lines
from mqis.protocol.directory.export_reading import ExportLines
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory import world as w


def export() -> bytes:
    with w.World().store.read() as view:
        return "\n".join([*exported_lines(view)[1], ""]).encode("ascii")


def test_all_objects_and_the_size_of_all_lines() -> None:
    data, sizes = export(), list[int]()
    lines = ExportLines(BytesIO(data), sizes.append)
    found = list(lines.objects(lines.header()))
    assert w.ORDERS in {obj.id for obj in found}
    assert sum(sizes) == len(data)
    assert lines.number == data.count(b"\n")


def test_lines_that_are_skipped_still_count() -> None:
    lines = ExportLines(BytesIO(export()))
    found = list(lines.objects(lines.header(), skipped='{"type":"queue"'))
    assert found
    assert ObjectType.QUEUE not in {obj.type for obj in found}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"\xff\n", "this line is not UTF-8"),
        (export().rsplit(b"\n", 2)[0] + b"\n", "the file was cut off or changed"),
    ],
)
def test_damage(data: bytes, reason: str) -> None:
    lines = ExportLines(BytesIO(data))
    with pytest.raises(ExportError, match=reason):
        list(lines.objects(lines.header()))


def test_a_line_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_reading, "MAX_LINE", 10)
    with pytest.raises(ExportError, match="a line has at most"):
        ExportLines(BytesIO(b"x" * 1000)).header()
