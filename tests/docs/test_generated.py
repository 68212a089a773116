"""The generated pages in docs/ are up to date with the code."""

from __future__ import annotations

from tools import architecture, properties_doc, protocols_doc, tables_doc


def test_the_picture_shows_these_imports() -> None:
    made = architecture.picture(architecture.layers(architecture.PACKAGE))
    assert architecture.PICTURE.read_text("utf-8") == made, "python tools/architecture.py"


def test_the_sections_are_those_that_are_cited() -> None:
    assert protocols_doc.PAGE.read_text("utf-8") == protocols_doc.page(), (
        "python tools/protocols_doc.py"
    )


def test_the_properties_are_those_of_the_directory() -> None:
    assert properties_doc.PAGE.read_text("utf-8") == properties_doc.page(), (
        "python tools/properties_doc.py"
    )


def test_the_tables_are_those_of_the_pipeline() -> None:
    assert tables_doc.PAGE.read_text("utf-8") == tables_doc.page(), "python tools/tables_doc.py"
