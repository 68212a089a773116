"""Reads the IDL of the specifications: typedefs, and the methods with their parameters.

It reads what these files contain, not all of the language. Two things are not as the text has them.
A ``wchar_t*`` is a string with or without [string], because one character would make no sense. An
``HRESULT`` is unsigned, which changes no octet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from tests.wire.ndr_judge.kinds import Enumeration, Handle, Identifier, Number, Text
from tests.wire.ndr_judge.shapes import Array, Pointer, Structure
from tests.wire.ndr_judge.streams import Kind
from tests.wire.ndr_judge.variant import PROPVARIANT

IDL = Path(__file__).parents[2] / "data" / "idl"

#: The types of MS-DTYP and MS-MQMQ, and those of the language.
_BASES: dict[str, Kind] = {
    **dict.fromkeys(("unsigned long", "DWORD", "PROPID", "HRESULT"), Number(4)),
    **dict.fromkeys(("long", "BOOL"), Number(4, signed=True)),
    **dict.fromkeys(("unsigned char", "byte"), Number(1)),
    "GUID": Identifier(),
    "PROPVARIANT": PROPVARIANT,
    "wchar_t": Number(2),
    "void": Handle(),  # only behind a context handle
}
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|^const [^;]*;", re.DOTALL | re.MULTILINE)
_STATEMENT = re.compile(
    r"(?P<struct>typedef struct \w+\s*\{(?P<members>.*?)\}\s*(?P<struct_name>\w+)\s*;)"
    r"|(?P<enum>typedef enum \w+\s*\{(?P<codes>.*?)\}\s*(?P<enum_name>\w+)\s*;)"
    r"|(?P<typedef>typedef (?P<base>[^;{]*?);)"
    r"|interface (?P<interface>\w+)"
    r"|(?P<callback>\[callback\])?\s*(?P<result>HRESULT|unsigned long|long|void)\s+"
    r"(?P<method>\w+)\s*\((?P<parameters>.*?)\)\s*;",
    re.DOTALL,
)
_PARAMETER = re.compile(r"(?:\[[^\]]*\]|[^,\[])+")
_ATTRIBUTE = re.compile(r"(\w+)(?:\s*\(((?:[^()]|\([^()]*\))*)\))?")
_DECLARATION = re.compile(
    r"(?:\[(?P<attributes>[^\]]*)\])?\s*(?:const )?(?P<type>[\w ]*?)\s*(?P<stars>[*\s]*)"
    r"\b(?P<name>\w+)\s*(?P<array>\[\])?$"
)


@dataclass(frozen=True)
class Declaration:
    """A name with its type, number of stars and attributes."""

    name: str
    type: str
    stars: int
    array: bool
    attributes: dict[str, str]

    @classmethod
    def parse(cls, text: str) -> Declaration:
        match = _DECLARATION.match(" ".join(text.split()))
        assert match, text
        attributes = dict(_ATTRIBUTE.findall(match["attributes"] or ""))
        stars = match["stars"].count("*")
        return cls(match["name"], match["type"].strip(), stars, bool(match["array"]), attributes)


@dataclass(frozen=True)
class Method:
    """A method; its requests and responses have these parameters, in this order."""

    interface: str
    opnum: int
    name: str
    callback: bool
    request: dict[str, Kind]
    response: dict[str, Kind]


class Reader:
    """The types and methods of one file."""

    def __init__(self, text: str) -> None:
        text = _COMMENTS.sub("", text)
        self.constants = {name: int(n) for name, n in re.findall(r"#define (\w+) (\d+)", text)}
        self.kinds = dict(_BASES)
        self.typedefs: dict[str, Declaration] = {}
        self.methods: list[Method] = []
        self.interface = ""
        for match in _STATEMENT.finditer(re.sub(r"#define.*", "", text)):
            self._take(match)

    def _take(self, match: re.Match[str]) -> None:
        if match["struct"]:
            declared = [
                Declaration.parse(each) for each in match["members"].split(";") if each.strip()
            ]
            members = {each.name: self._member(each) for each in declared}
            self.kinds[match["struct_name"]] = Structure(match["struct_name"], members)
        elif match["enum"]:
            codes = re.findall(r"= (0x\w+)", match["codes"])
            self.kinds[match["enum_name"]] = Enumeration(tuple(int(code, 16) for code in codes))
        elif match["typedef"]:
            declared_type = Declaration.parse(match["base"])
            self.typedefs[declared_type.name] = declared_type
        elif match["interface"]:
            self.interface = match["interface"]
            self.opnums = {True: 0, False: 0}
        else:
            self._take_method(match)

    def _take_method(self, match: re.Match[str]) -> None:
        callback = match["callback"] is not None
        opnum = self.opnums[callback]
        self.opnums[callback] += 1
        if match["method"].endswith("NotUsedOnWire"):
            return
        ways: dict[str, dict[str, Kind]] = {"in": {}, "out": {}}
        for text in _PARAMETER.findall(match["parameters"]):
            declared = Declaration.parse(text)
            for way in ways.keys() & declared.attributes.keys():
                if declared.type != "handle_t":
                    ways[way][declared.name] = self._parameter(declared)
        if match["result"] != "void":
            ways["out"]["return"] = self.kinds[match["result"]]
        method = Method(self.interface, opnum, match["method"], callback, ways["in"], ways["out"])
        self.methods.append(method)

    # --- types ------------------------------------------------------------------------------------

    def _expanded(self, declared: Declaration) -> Declaration:
        """The declaration with its typedefs replaced; a context handle has no star of its own."""
        while declared.type in self.typedefs:
            base = self.typedefs[declared.type]
            stars = 0 if "context_handle" in base.attributes else base.stars
            attributes = {**base.attributes, **declared.attributes}
            declared = replace(
                declared, type=base.type, stars=declared.stars + stars, attributes=attributes
            )
        return declared

    def _parameter(self, declared: Declaration) -> Kind:
        """A first pointer is a reference pointer, which is not on the wire, unless it says so."""
        declared = self._expanded(declared)
        nullable = {"unique", "ptr"} & declared.attributes.keys()
        outer = 1 if declared.stars and not nullable else 0
        kind = self._pointed_to(declared)
        for _ in range(declared.stars - outer):
            kind = Pointer(kind)
        return kind

    def _member(self, declared: Declaration) -> Kind:
        """A pointer in a structure is unique by pointer_default."""
        declared = self._expanded(declared)
        kind = self._pointed_to(declared)
        for _ in range(declared.stars):
            kind = Pointer(kind)
        return kind

    def _pointed_to(self, declared: Declaration) -> Kind:
        attributes, kind = declared.attributes, self.kinds[declared.type]
        bounds = self._range(attributes)
        if "string" in attributes or declared.type == "wchar_t":
            assert isinstance(kind, Number)
            return Text(kind.size, *bounds) if bounds else Text(kind.size)
        if isinstance(kind, Number) and bounds:
            kind = replace(kind, low=bounds[0], high=bounds[1])
        if "size_is" in attributes:
            names = [attributes.get(each, "").strip(",* ") for each in ("size_is", "length_is")]
            return Array(kind, names[0], names[1] or None)
        return kind

    def _range(self, attributes: dict[str, str]) -> tuple[int, int] | None:
        if "range" not in attributes:
            return None
        low, high = (self._number(text) for text in attributes["range"].split(","))
        return low, high

    def _number(self, text: str) -> int:
        """A sum of products of numbers, #defines and sizeof, which is there for one structure."""
        known = {**self.constants, "sizeof(BIND_INFO_BLOB)": 8}
        terms = [[each.strip() for each in term.split("*")] for term in text.split("+")]
        return sum(prod(known.get(each) or int(each, 0) for each in term) for term in terms)


def read(name: str) -> list[Method]:
    return Reader((IDL / name).read_text()).methods


METHODS = read("ms-mqds.idl") + read("ms-cmpo.idl")
