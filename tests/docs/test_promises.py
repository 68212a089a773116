"""Sentences that say "not yet" still hold.

What mqis cannot do becomes untrue the day that it can. ``still_true.toml`` lists each such sentence
of the pages, of help texts and of docstrings, with the reason that it holds. A new one fails here
until it is judged, and an entry whose sentence is gone fails too.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.documents import ROOT
from tests.docs.pages import PAGES

_MARKS = r"\b(?:TODO|FIXME|XXX)\b"
_PHRASES = (
    r"not yet|cannot yet|until then|(?:a )?(?:later|future|coming) (?:version|release)|for now"
    r"|for the time being|not (?:yet )?implemented|unimplemented"
)
#: On pages also with words between: "mqis cannot read it yet".
_APART = r"(?:not|cannot|no|nothing|never)\b[^.;:|]{0,60}\byet"
ON_PAGES = re.compile(rf"{_MARKS}|(?i:\b(?:{_PHRASES}|{_APART})\b)")
IN_CODE = re.compile(rf"{_MARKS}|(?i:\b(?:{_PHRASES})\b)")


class Sentence(NamedTuple):
    file: str
    text: str


class StillTrue(NamedTuple):
    file: str
    words: str
    reason: str

    def is_about(self, sentence: Sentence) -> bool:
        return self.file == sentence.file and self.words in sentence.text


def sentences(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The sentences, cells and items of a text in which the pattern is found."""
    for paragraph in re.split(r"\n\s*\n|\n(?=[|*-] ?)|\n(?=#)", text):
        for sentence in re.split(r"(?<=[.!?])\s|\s\|\s", " ".join(paragraph.split())):
            if pattern.search(sentence):
                yield sentence


def texts(path: Path) -> Iterator[str]:
    """The docstrings, help texts and messages of a module."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def found() -> tuple[Sentence, ...]:
    pages = (
        Sentence(path.relative_to(ROOT).as_posix(), sentence)
        for path in PAGES
        for sentence in sentences(path.read_text("utf-8"), ON_PAGES)
    )
    code = (
        Sentence(path.relative_to(ROOT).as_posix(), sentence)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for text in texts(path)
        for sentence in sentences(text, IN_CODE)
    )
    return (*pages, *code)


@cache
def listed() -> tuple[StillTrue, ...]:
    content = tomllib.loads(Path(__file__).with_name("still_true.toml").read_text("utf-8"))
    return tuple(StillTrue(**entry) for entry in content["sentence"])


def test_every_sentence_that_promises_something_was_judged() -> None:
    assert [each for each in found() if not any(e.is_about(each) for e in listed())] == []


@pytest.mark.parametrize("entry", listed(), ids=lambda entry: f"{entry.file}: {entry.words}")
def test_an_entry_stands_for_a_sentence(entry: StillTrue) -> None:
    assert any(entry.is_about(each) for each in found()), "the sentence is gone: remove the entry"
    assert len(entry.reason.split()) >= 4


def test_entries_stand_once() -> None:
    times = Counter((entry.file, entry.words) for entry in listed())
    assert max(times.values()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Active Directory alone: mqis cannot read it yet.",
        "Until then: a list.",
        "This comes in a later version.",
        "It is not\nyet there.",
        "TODO: explain",
    ],
)
def test_promises_are_found(text: str) -> None:
    assert list(sentences(text, ON_PAGES))
