"""docs/configuration.md is what the sections say now."""

from __future__ import annotations

from dataclasses import fields

from mqis.config.sections import Config
from tools import configuration_doc


def test_it_is_up_to_date() -> None:
    made = configuration_doc.document()
    found = configuration_doc.DOCUMENT.read_text("utf-8")
    assert found == made, "run python tools/configuration_doc.py"


def test_every_section_and_key_is_in_it() -> None:
    text = configuration_doc.document()
    for section in fields(Config):
        assert f"## [{section.name}]" in text
        for key in fields(section.default):  # type: ignore[arg-type]
            assert f"| `{key.name}` |" in text or key.name == "entries"


def test_what_a_key_may_be_is_in_the_words_of_its_check() -> None:
    text = configuration_doc.document()
    assert "| `port` | `1801` | number from 0 to 65535 |" in text
    assert '| `role` | `"none"` | pec, psc, bsc, none |' in text
    assert '| `listen` | `"127.0.0.1"` | IP address |' in text
