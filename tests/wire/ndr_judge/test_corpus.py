"""The corpus, read and written by the judge and by mqis."""

from __future__ import annotations

import pytest

from mqis.wire.ndr import Syntax
from mqis.wire.propvariant import VarType
from tests.wire.ndr_judge.corpus import BY_NAME, Entry, entries
from tests.wire.ndr_judge.ours import OPERATIONS, as_ours, sizes
from tests.wire.ndr_judge.stub import decode, encode

ENTRIES = entries()


def test_every_method_direction_and_syntax_is_there() -> None:
    found = {(entry.call, entry.direction, entry.syntax) for entry in ENTRIES}
    ways = [(way, syntax.name) for way in ("request", "response") for syntax in Syntax]
    assert found == {(name, *way) for name in OPERATIONS for way in ways}


def test_every_variant_type_is_there() -> None:
    for syntax in Syntax:
        requests = [entry for entry in ENTRIES if entry.syntax == syntax.name]
        found = [v["vt"] for entry in requests for v in entry.values.get("apVar", ())]
        assert set(found) == set(VarType)


@pytest.mark.parametrize("call", BY_NAME)
def test_the_judge_reads_and_writes_it(call: str) -> None:
    for entry in (entry for entry in ENTRIES if entry.call == call):
        assert encode(entry.kinds, entry.values, entry.wide, entry.counts) == entry.stub
        assert decode(entry.kinds, entry.stub, entry.wide, entry.counts) == entry.values


@pytest.mark.parametrize("call", BY_NAME)
def test_mqis_reads_and_writes_it(call: str) -> None:
    for entry in (entry for entry in ENTRIES if entry.call == call):
        _check(entry)


def _check(entry: Entry) -> None:
    operation, syntax = OPERATIONS[entry.call], Syntax[entry.syntax]
    described = operation.request if entry.direction == "request" else operation.response
    value, given = as_ours(described, entry.kinds, entry.values), sizes(entry.counts)
    assert described.decode(entry.stub, syntax, given=given) == value
    assert described.encode(value, syntax, given=given) == entry.stub
