"""Search filters: the tree, its text and back, and values that attack."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap.filters import (
    MAXIMUM_DEPTH,
    MAXIMUM_TEXT,
    And,
    Equality,
    ExtensibleMatch,
    Filter,
    GreaterOrEqual,
    LessOrEqual,
    Not,
    Or,
    Present,
    Substrings,
    parse_filter,
)

ATTRIBUTES = st.sampled_from(["cn", "mSMQLabelEx", "1.2.840.113556.1.4.803", "member;binary"])
VALUES = st.binary(max_size=12)
PIECES = st.binary(min_size=1, max_size=5)


def _is_substring(parts: tuple[bytes, tuple[bytes, ...], bytes]) -> bool:
    return any(parts)


ITEMS: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Equality, ATTRIBUTES, VALUES),
    st.builds(GreaterOrEqual, ATTRIBUTES, VALUES),
    st.builds(LessOrEqual, ATTRIBUTES, VALUES),
    st.builds(Present, ATTRIBUTES),
    st.builds(ExtensibleMatch, st.just("1.2.3"), st.just("") | ATTRIBUTES, VALUES, st.booleans()),
    st.tuples(ATTRIBUTES, st.tuples(VALUES, st.lists(PIECES, max_size=2).map(tuple), VALUES))
    .filter(lambda pair: _is_substring(pair[1]))
    .map(lambda pair: Substrings(pair[0], *pair[1])),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    ITEMS,
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=8,
)


@given(FILTERS)
@pytest.mark.req("MQDSSM-3.1.6.15-09")
def test_written_and_read_back_is_the_same(node: Filter) -> None:
    assert parse_filter(str(node)) == node


@given(st.text(st.sampled_from("()&|!=<>~:*\\a0 dn;.\x00é"), max_size=24))
def test_garbage_is_one_error_or_a_filter(text: str) -> None:
    try:
        found = parse_filter(text)
    except WireError:
        return
    assert parse_filter(str(found)) == found


@pytest.mark.parametrize(
    "value", ["*", "x)(cn=*", "a\\2a", "\0", "(", "&", "*)(objectClass=*))(|(x=y"]
)
@pytest.mark.req("MQDSSM-3.1.6.15-09")
def test_a_value_stays_one_value(value: str) -> None:
    node = Equality("mSMQLabelEx", value.encode())
    text = str(node)
    assert parse_filter(text) == node
    inside = text.removeprefix("(mSMQLabelEx=").removesuffix(")")
    assert not set(inside) & set("*()\0")


@pytest.mark.parametrize(
    "text",
    [
        "", "(", "a=b", "(a=b", "(a=b))", "(=b)", "(a~=b)", "(a=**)", "(a=\\zz)", "(a=\\1)",
        "(:=x)", "(a=\\ 1)", "(!)", "(&(a=b)", "(a=\ud800)", "(a)",
    ],
)  # fmt: skip
def test_malformed_filters(text: str) -> None:
    with pytest.raises(WireError):
        parse_filter(text)


def test_limits() -> None:
    with pytest.raises(WireError, match="nested"):
        parse_filter("(!" * (MAXIMUM_DEPTH + 2))
    with pytest.raises(WireError, match="more than"):
        parse_filter("(" * (MAXIMUM_TEXT + 1))


def test_an_attribute_cannot_carry_a_filter() -> None:
    with pytest.raises(WireError, match="not the name"):
        str(Present("cn=*)(a"))
    with pytest.raises(ValueError, match="pieces"):
        Substrings("cn")
    with pytest.raises(ValueError, match="pieces"):
        Substrings("cn", b"a", (b"",))
    with pytest.raises(ValueError, match="rule or an attribute"):
        ExtensibleMatch("", "", b"")


def test_texts() -> None:
    assert str(parse_filter("(&(a=b)(|(c>=1)(!(d<=2)))(e=x*y*z)(f=*)(g:dn:1.2:=3))")) == (
        "(&(a=b)(|(c>=1)(!(d<=2)))(e=x*y*z)(f=*)(g:dn:1.2:=3))"
    )
