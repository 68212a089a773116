"""Writes into an enterprise file what commands have changed; comments and order stay."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqis.config.errors import ConfigError
from mqis.enterprise.difference import Drift, PlanDifference
from mqis.enterprise.kept_plan import plain_value
from mqis.enterprise.plan import EntryKind, check_plan, link_key
from mqis.files import write_whole
from mqis.protocol.directory.objects import name_key


def adopt(path: Path, difference: PlanDifference, *, write: bool = True) -> list[str]:
    """Changes the file; returns what was written, one line each, or what ``write`` would.

    Raises ``ConfigError`` and writes nothing if the result would be no plan.
    """
    document = PlanText(path.read_bytes().decode("utf-8"), str(path))
    told = [_take(document, drift) for drift in difference.drift if drift.adoptable]
    deleted = [step for step in difference.steps if step.deleted]
    for step in deleted:
        told += _drop(document, step.kind, step.entry.key)
    for step in deleted:
        if step.kind is EntryKind.SITE:
            told += _drop_servers(document, step.entry.key)
    if told:
        try:
            check_plan(tomllib.loads(document.text.removeprefix("\ufeff")), str(path))
        except ConfigError as error:
            raise ConfigError(
                f"{error}; so this cannot be adopted, and nothing was written: {'; '.join(told)}"
            ) from None
        if write:
            content = document.text.encode()
            write_whole(path, content, mode=path.stat().st_mode & 0o777)
    return told


def _take(document: PlanText, drift: Drift) -> str:
    kind = drift.kind.value
    if drift.entry is None:
        names = drift.name.split(" - ")
        first = {"sites": names} if drift.kind is EntryKind.LINK else {"name": drift.name}
        others = {key: plain_value(v) for key, v in drift.now.items() if v not in ("", None)}
        document.add(kind, first | others)
        return f"{kind} {drift.name}: added"
    for number, entry in enumerate(document.entries(kind)):
        if _key_of(drift.kind, entry) == drift.entry.key:
            document.update(kind, number, {k: plain_value(value) for k, value in drift.now.items()})
    values = ", ".join(f"{key} = {plain_value(value)}" for key, value in drift.now.items())
    return f"{kind} {drift.name}: {values}"


def _drop(document: PlanText, kind: EntryKind, key: str) -> Iterator[str]:
    for number, entry in enumerate(document.entries(kind.value)):
        if _key_in(document, kind, entry) == key:
            document.drop(kind.value, number)
            yield f"{kind} {_name_of(kind, entry)}: taken out"
            return


def _drop_servers(document: PlanText, site: str) -> Iterator[str]:
    """Takes out the servers of a deleted site, which keep running until they are removed."""
    servers = document.entries(EntryKind.SERVER.value)
    for key in [name_key(str(s["name"])) for s in servers if name_key(str(s["site"])) == site]:
        yield from _drop(document, EntryKind.SERVER, key)


def _name_of(kind: EntryKind, entry: Mapping[str, Any]) -> str:
    if kind is EntryKind.LINK:
        return " - ".join(map(str, entry["sites"]))
    return str(entry["path" if kind is EntryKind.QUEUE else "name"])


def _key_of(kind: EntryKind, entry: Mapping[str, Any]) -> str:
    if kind is EntryKind.LINK:
        return link_key(map(str, entry["sites"]))
    return name_key(_name_of(kind, entry))


def _key_in(document: PlanText, kind: EntryKind, entry: Mapping[str, Any]) -> str:
    """The key of an entry; that of an account has its domain, usually the enterprise's name."""
    if kind is not EntryKind.ACCOUNT:
        return _key_of(kind, entry)
    domain = entry.get("domain") or str(document.table("enterprise")["name"]).upper()
    return name_key(f"{domain}\\{entry['name']}")


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
