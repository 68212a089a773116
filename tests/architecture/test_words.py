"""Names and first words: a class name has one meaning, a docstring does not begin as a riddle."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import mqis
from tools.survey import (
    Module,
    circles,
    first_words,
    homonyms,
    modules,
    property_tables,
    questions,
)

Parse = Callable[[Path], list[Module]]

PACKAGE = Path(mqis.__file__).parent
ROOT = PACKAGE.parents[1]
#: The largest share of docstrings that may begin with What, Whether, How, Where, Who ...
MOST_QUESTIONS = 1 / 50
#: Lists of what a caller asks for, which are no facts about properties.
ASKED_FOR = {"mqis.client.events", "mqis.protocol.routing.model"}


@pytest.fixture(scope="module")
def parsed() -> Parse:
    """Parses each tree once. Nothing of it outlives this module: it is a million objects."""
    return cache(modules)


def test_a_public_class_name_has_one_meaning(parsed: Parse) -> None:
    assert homonyms(parsed(PACKAGE)) == {}


@pytest.mark.parametrize("tree", ["src/mqis", "tests", "tools", "bench", "fuzz", "examples"])
def test_docstrings_begin_with_a_verb_or_a_noun(parsed: Parse, tree: str) -> None:
    words = first_words(parsed(ROOT / tree))
    assert questions(words) < MOST_QUESTIONS, words


def test_no_modules_import_each_other(parsed: Parse) -> None:
    assert circles(parsed(PACKAGE)) == []


def test_properties_are_described_in_their_rows(parsed: Parse) -> None:
    """Everything known of a property stands in its row, so no other module keeps a list of them."""
    tables = property_tables(parsed(PACKAGE))
    assert {name for name, _ in tables if name not in ASKED_FOR} == set()


def plant(directory: Path, sources: dict[str, str]) -> Path:
    package = directory / "house"
    package.mkdir()
    for name, source in sources.items():
        (package / f"{name}.py").write_text(source, encoding="utf-8")
    return package


def test_the_survey_sees_what_it_is_for(tmp_path: Path) -> None:
    package = plant(
        tmp_path,
        {
            "a": '"""What a is."""\nfrom house.b import B\nclass Place: pass\n',
            "b": '"""The b."""\nimport house.a\nclass Place: pass\nclass _Own: pass\n',
            "d": "from house.e import E\n",
            "e": "if TYPE_CHECKING:\n    from house.d import D\n",
            "c": "ROWS = {PropId.Q_LABEL: 1, PropId.Q_TYPE: 2}\nclass _Own: pass\n",
        },
    )
    found = modules(package)
    assert homonyms(found) == {"Place": ["house.a", "house.b"]}
    assert questions(first_words(found)) == 1 / 2
    assert circles(found) == [["house.a", "house.b"], ["house.d", "house.e"]]
    assert property_tables(found) == [("house.c", 1)]
