"""The lines that docs/export.md shows are lines that an import reads."""

from __future__ import annotations

from mqis.protocol.directory.export_format import format_header, parse_header
from tests.docs.documents import blocks, text_of


def test_the_first_line_is_as_an_export_writes_it() -> None:
    (line,) = blocks(text_of("export.md"), "json")[0].splitlines()
    header = parse_header(line)
    assert header.enterprise == "Meridian"
    assert format_header(header) == line
