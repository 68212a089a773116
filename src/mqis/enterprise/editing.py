"""Edits single entries of an enterprise file, as text: all the rest stays, byte by byte.

A parser that writes a file again moves comments where lists of tables alternate, as ``[[machine]]``
and ``[[queue]]`` of one machine do. So the file is only divided into statements here: headers, keys
and comments, each with its place in the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mqis.config.file import ConfigError

_HEADER = re.compile(r"\[\[\s*([A-Za-z0-9_-]+)\s*\]\]")
_STRINGS = ('"""', "'''", '"', "'")


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a table: the places of its line and of its value in the text."""

    name: str
    start: int
    value: tuple[int, int]
    end: int


@dataclass(frozen=True, slots=True)
class _Block:
    """A table with its keys; ``kind`` is empty unless it is an entry of a list, ``[[kind]]``."""

    kind: str
    start: int
    #: The end of its last line; blank lines and comments after it belong to nobody.
    end: int
    keys: tuple[_Key, ...]


class PlanText:
    """The text of an enterprise file, which is changed entry by entry."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self._source = source
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def entries(self, kind: str) -> list[dict[str, Any]]:
        """The entries of a list, in the order of the file."""
        found: list[dict[str, Any]] = self._content.get(kind, [])
        if len(found) != len(self._blocks(kind)):
            raise ConfigError(
                f"{self._source}: {kind}: this list is not written as [[{kind}]] tables, so it "
                "cannot be changed here; change it by hand"
            )
        return found

    def table(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self._content[name]
        return found

    @property
    def _content(self) -> dict[str, Any]:
        return tomllib.loads(self.text.removeprefix("\ufeff"))

    def update(self, kind: str, number: int, values: Mapping[str, object]) -> None:
        """Sets keys of an entry; those that it lacks are added after its last line."""
        for name, value in values.items():
            block = self._blocks(kind)[number]
            known = next((key for key in block.keys if key.name == name), None)
            if known is None:
                self._insert(block.end, f"{name} = {_as_text(value)}")
            else:
                start, end = known.value
                self.text = f"{self.text[:start]}{_as_text(value)}{self.text[end:]}"

    def add(self, kind: str, values: Mapping[str, object]) -> None:
        """Adds an entry after the last one of its kind, else at the end."""
        lines = ["", f"[[{kind}]]", *(f"{k} = {_as_text(v)}" for k, v in values.items())]
        blocks = self._blocks(kind)
        self._insert(blocks[-1].end if blocks else len(self.text), self._newline.join(lines))

    def drop(self, kind: str, number: int) -> None:
        """Takes an entry out with the blank lines after it; comments around it stay."""
        block = self._blocks(kind)[number]
        blank = re.compile(r"(?:[ \t]*\r?\n)*").match(self.text, block.end)
        self.text = self.text[: block.start] + self.text[blank.end() if blank else block.end :]

    def _insert(self, at: int, lines: str) -> None:
        before = self.text[:at]
        gap = "" if not before or before.endswith("\n") else self._newline
        self.text = f"{before}{gap}{lines}{self._newline}{self.text[at:]}"

    def _blocks(self, kind: str) -> list[_Block]:
        return [block for block in _blocks(self.text) if block.kind == kind]


def _as_text(value: object) -> str:
    import tomlkit  # noqa: PLC0415 -- slow

    return tomlkit.item(value).as_string()


# --- statements -----------------------------------------------------------------------------------


def _blocks(text: str) -> Iterator[_Block]:
    """Divides a file that is valid TOML into its tables; keys before the first are left out."""
    at = 1 if text.startswith("\ufeff") else 0
    kind, start, end, keys = None, 0, 0, list[_Key]()
    while at < len(text):
        line = at
        at = _skip_spaces(text, at)
        if text.startswith("[", at):
            if kind is not None:
                yield _Block(kind, start, end, tuple(keys))
            header = _HEADER.match(text, at)
            kind, start, keys = "" if header is None else header[1], line, []
            at = end = _next_line(text, at)
        elif text[at : at + 1] in ("#", "\r", "\n", ""):
            at = _next_line(text, at)
        else:
            key = _key(text, line, at)
            keys.append(key)
            at = end = key.end
    if kind is not None:
        yield _Block(kind, start, end, tuple(keys))


def _key(text: str, line: int, at: int) -> _Key:
    equals = at
    while text[equals] != "=":
        equals = _after_token(text, equals)
    start = _skip_spaces(text, equals + 1)
    end = _end_of_value(text, start)
    name = text[at:equals].strip().strip("\"'")
    return _Key(name, line, (start, end), _next_line(text, end))


def _end_of_value(text: str, at: int) -> int:
    """The end of a value without the blanks after it: at a comment or the end of its line."""
    depth = 0
    end = at
    while at < len(text):
        one = text[at]
        if one == "#" and depth:
            at = _next_line(text, at)
            continue
        if not depth and one in "#\r\n":
            break
        depth += (one in "[{") - (one in "]}")
        at = _after_token(text, at)
        if not one.isspace():
            end = at
    return end


def _after_token(text: str, at: int) -> int:
    """The place after a string that begins here, else after one character."""
    quote = next((mark for mark in _STRINGS if text.startswith(mark, at)), None)
    if quote is None:
        return at + 1
    at += len(quote)
    while not text.startswith(quote, at):
        at += 2 if text[at] == "\\" and quote[0] == '"' else 1
    at += len(quote)
    while len(quote) > 1 and text.startswith(quote[0], at):  # quotes before the closing ones
        at += 1
    return at


def _skip_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _next_line(text: str, at: int) -> int:
    """The beginning of the line after this one; here there is no string left in it."""
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
