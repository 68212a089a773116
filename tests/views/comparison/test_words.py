"""Differences in words: names for references, a mark for equal texts, safe pages."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given

from mqis.protocol.directory.directory_difference import ObjectFate
from mqis.protocol.directory.objects import DirectoryObject
from mqis.views.comparison.page import as_json, html_page
from mqis.views.comparison.side import DirectorySide
from mqis.views.comparison.words import ChangedObject, ComparedParts, DirectoryComparison
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import Value
from mqis.wire.seqnum import SequenceNumber
from tests.strategies.export import directories

HOSTILE = "</td><script>alert('1')</script>\x1b[2J\u202e\ud800\"&"


def obj(kind: ObjectType, number: int, values: dict[int, Value]) -> DirectoryObject:
    guid = Guid(bytes([number]) * 16)
    return DirectoryObject(kind, guid, Guid.NULL, SequenceNumber(1), props(values))


def compared(
    before: list[DirectoryObject],
    after: list[DirectoryObject],
    parts: ComparedParts | None = None,
    hidden: frozenset[int] = frozenset(),
) -> DirectoryComparison:
    return DirectoryComparison(
        DirectorySide("monday", iter(before)), DirectorySide("friday", iter(after), hidden), parts
    )


def shown(comparison: DirectoryComparison) -> list[ChangedObject]:
    return [one for _, members in comparison.groups() for one in members]


BERLIN = obj(ObjectType.SITE, 1, {PropId.S_PATHNAME: "Berlin"})
PARIS = obj(ObjectType.SITE, 2, {PropId.S_PATHNAME: "Paris"})
LINK = obj(
    ObjectType.ROUTINGLINK,
    3,
    {PropId.L_NEIGHBOR1: BERLIN.id, PropId.L_NEIGHBOR2: PARIS.id, PropId.L_ACTUAL_COST: 1},
)
#: Comes after the link, which names it.
GATE = obj(ObjectType.MACHINE, 4, {PropId.QM_PATHNAME: "gate1"})


def test_a_link_is_named_by_its_sites_and_refers_by_name() -> None:
    gated = replace(LINK, properties={**LINK.properties, **props({PropId.L_GATES: (GATE.id,)})})
    (one,) = shown(compared([BERLIN, PARIS, LINK, GATE], [BERLIN, PARIS, gated, GATE]))
    assert one.name == "Berlin - Paris"
    (each,) = one.properties
    assert (each.word, each.after, each.raw_after) == ("gates", "gate1", [str(GATE.id)])


def test_values_with_one_text_are_told_apart() -> None:
    keys = [
        obj(ObjectType.QUEUE, 1, {PropId.Q_PATHNAME: "m\\q", PropId.Q_SECURITY: b"\x01" * 40 + end})
        for end in (b"a", b"b")
    ]
    (one,) = shown(compared(keys[:1], keys[1:]))
    (each,) = one.properties
    assert each.before is not None
    assert each.after is not None
    assert each.before != each.after
    assert each.before.partition(" (SHA")[0] == each.after.partition(" (SHA")[0]


def test_parts_and_hidden_properties_are_not_compared() -> None:

    def side(text: str, number: int) -> list[DirectoryObject]:
        path, label, quota = PropId.Q_PATHNAME, PropId.Q_LABEL, PropId.Q_QUOTA
        return [obj(ObjectType.QUEUE, 1, {path: "m\\q", label: text, quota: number})]

    before, after = side("a", 1), side("b", 2)
    assert len(shown(compared(before, after))[0].properties) == 2
    without = compared(before, after, ComparedParts(ignored=frozenset({"label"})))
    assert [each.word for each in shown(without)[0].properties] == ["quota"]
    untold = compared(before, after, hidden=frozenset({PropId.Q_QUOTA}))
    assert [each.word for each in shown(untold)[0].properties] == ["label"]
    assert untold.not_compared == ("quota",)
    assert compared(before, after, ComparedParts(types=frozenset({ObjectType.SITE}))).same


def test_replicas_are_compared_by_what_travels() -> None:
    """A queue of site scope is not at other sites, and not every property travels."""
    here = obj(ObjectType.QUEUE, 1, {PropId.Q_PATHNAME: "m\\q", PropId.Q_SCOPE: 0})
    site = obj(ObjectType.SITE, 2, {PropId.S_PATHNAME: "Berlin", PropId.S_FOREIGN: 1})
    there = replace(site, properties=props({PropId.S_PATHNAME: "Berlin"}))
    assert not compared([site, here], [there]).same
    assert compared([site, here], [there], ComparedParts(replicated=True)).same


class Tags(HTMLParser):
    """Collects the names of all elements, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


#: No element that loads or runs anything, and no attribute that does.
ELEMENTS = "html head meta title style body main h1 h2 p strong details summary span table thead"
ATTRIBUTES = "lang charset name content http-equiv class open aria-hidden scope"
HARMLESS = {*ELEMENTS.split(), *ATTRIBUTES.split(), "tbody", "tr", "th", "td"}


@pytest.mark.req("SEC-12-13")
def test_hostile_names_stay_text() -> None:
    path = f"m\\{HOSTILE}"
    one = obj(ObjectType.QUEUE, 1, {PropId.Q_PATHNAME: path, PropId.Q_LABEL: HOSTILE})
    two = obj(ObjectType.QUEUE, 1, {PropId.Q_PATHNAME: path, PropId.Q_LABEL: ""})
    before = DirectorySide(HOSTILE, iter([one]), notes=(HOSTILE,))
    page = "".join(html_page(DirectoryComparison(before, DirectorySide(HOSTILE, iter([two])))))
    page.encode("utf-8")
    found = Tags(page)
    assert found.names <= HARMLESS
    assert found.text.count("<script>alert('1')</script>\\x1b[2J\\u202e\\ud800\"&") == 5
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", page)
    assert "default-src 'none'" in page


def test_a_page_has_everything() -> None:
    old = obj(ObjectType.QUEUE, 1, {PropId.Q_PATHNAME: "m\\old"})
    new = obj(ObjectType.QUEUE, 2, {PropId.Q_PATHNAME: "m\\new"})
    found = compared([BERLIN, old], [BERLIN, new])
    assert found.counts() == {
        ObjectFate.CREATED: 1,
        ObjectFate.DELETED: 1,
        ObjectFate.CHANGED: 0,
        ObjectFate.REPLACED: 0,
    }
    text = Tags("".join(html_page(found))).text
    for word in ("monday", "friday", "1 created, 1 deleted", "m\\old (deleted)", str(new.id)):
        assert word in text


@given(directories)
def test_any_object_can_be_shown(objects: list[DirectoryObject]) -> None:
    """Damaged exports are compared too: wrong variant types, unknown properties."""
    found = compared([], objects)
    assert len(as_json(found)["objects"]) == len(objects)  # type: ignore[arg-type]
    "".join(html_page(found)).encode("utf-8")
