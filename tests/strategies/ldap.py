"""LDAP messages, for any test that needs some."""

from __future__ import annotations

from hypothesis import strategies as st

from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.codes import SearchScope
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.filters import (
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
)
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.requests import (
    Abandon,
    ExtendedRequest,
    SaslBind,
    SearchRequest,
    SimpleBind,
    Unbind,
)
from mqis.wire.ldap.responses import (
    AddResponse,
    BindResponse,
    DeleteResponse,
    ExtendedResponse,
    LdapResult,
    ModifyResponse,
    RenameResponse,
    SearchDone,
    SearchEntry,
    SearchReference,
)

names = st.text(st.characters(codec="utf-8"), max_size=12)
octets = st.binary(max_size=200)
attributes = st.sampled_from(["cn", "mSMQLabelEx", "member;range=0-1499", "1.2.840.113556.1.4.1"])
values = st.lists(octets, max_size=3).map(tuple)
rows = st.lists(st.tuples(attributes, values), max_size=3).map(tuple)
maybe = st.none() | octets

items = st.one_of(
    st.builds(Equality, attributes, octets),
    st.builds(GreaterOrEqual, attributes, octets),
    st.builds(LessOrEqual, attributes, octets),
    st.builds(Present, attributes),
    st.builds(
        Substrings,
        attributes,
        octets,
        st.lists(st.binary(min_size=1, max_size=5), max_size=2).map(tuple),
        st.binary(min_size=1, max_size=5),
    ),
    st.builds(Substrings, attributes, st.binary(min_size=1, max_size=5)),
    st.builds(ExtensibleMatch, st.just("1.2.3"), st.just("") | attributes, octets, st.booleans()),
    st.builds(ExtensibleMatch, st.just(""), attributes, octets),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    items,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple).map(And),
        st.lists(inner, max_size=3).map(tuple).map(Or),
        inner.map(Not),
    ),
    max_leaves=6,
)

results = st.builds(
    LdapResult, st.integers(0, 4096), names, names, st.lists(names, max_size=2).map(tuple)
)
sizes = st.integers(0, 0x7FFFFFFF)
operations = st.one_of(
    st.builds(SimpleBind, names, octets),
    st.builds(SaslBind, names, maybe, names),
    st.just(Unbind()),
    st.builds(
        SearchRequest,
        names,
        st.sampled_from(SearchScope),
        filters,
        st.lists(attributes, max_size=3).map(tuple),
        sizes,
        sizes,
        st.booleans(),
    ),
    st.builds(
        ModifyEntry,
        names,
        st.lists(
            st.builds(AttributeChange, st.sampled_from(ModifyKind), attributes, values),
            max_size=3,
        ).map(tuple),
    ),
    st.builds(AddEntry, names, rows),
    st.builds(DeleteEntry, names),
    st.builds(RenameEntry, names, names, st.booleans(), st.none() | names),
    st.builds(Abandon, sizes),
    st.builds(ExtendedRequest, names, maybe),
    st.builds(BindResponse, results, maybe),
    st.builds(SearchEntry, names, rows),
    st.builds(SearchReference, st.lists(names, max_size=3).map(tuple)),
    *(
        st.builds(kind, results)
        for kind in (SearchDone, ModifyResponse, AddResponse, DeleteResponse, RenameResponse)
    ),
    st.builds(ExtendedResponse, results, names, maybe),
)
controls = st.builds(LdapControl, names, st.booleans(), maybe)
messages = st.builds(LdapMessage, sizes, operations, st.lists(controls, max_size=2).map(tuple))
