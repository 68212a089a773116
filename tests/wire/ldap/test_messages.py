"""LDAP messages: vectors of the text, round trips, streams, garbage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.wire.errors import WireError
from mqis.wire.ldap import ber
from mqis.wire.ldap.ber import BerReader
from mqis.wire.ldap.changes import (
    AddEntry,
    AttributeChange,
    DeleteEntry,
    ModifyEntry,
    ModifyKind,
    RenameEntry,
)
from mqis.wire.ldap.codes import SearchScope, code_name
from mqis.wire.ldap.controls import SdFlags, sd_flags, tree_delete
from mqis.wire.ldap.filter_ber import decode_filter, encode_filter
from mqis.wire.ldap.filters import MAXIMUM_DEPTH, Filter, Not, Present, parse_filter
from mqis.wire.ldap.messages import LdapMessage, MessageStream
from mqis.wire.ldap.requests import (
    Abandon,
    ExtendedRequest,
    SaslBind,
    SearchRequest,
    SimpleBind,
    Unbind,
)
from mqis.wire.ldap.responses import (
    BindResponse,
    LdapResult,
    SearchDone,
    SearchEntry,
)
from tests.strategies.ldap import messages

#: Written by hand from RFC 4511, as ldap-utils sends them.
VECTORS = [
    (
        LdapMessage(1, SimpleBind("cn=a", b"pw")),
        "3012 020101 600d 020103 0404636e3d61 80027077",
    ),
    (
        LdapMessage(2, SaslBind("GSS-SPNEGO", b"\x60")),
        "301b 020102 6016 020103 0400 a30f 040a4753532d53504e45474f 040160",
    ),
    (LdapMessage(3, Unbind()), "3005 020103 4200"),
    (
        LdapMessage(4, SearchRequest("", SearchScope.BASE, Present("objectClass"), ("cn",), 1, 2)),
        "30290201046324 04000a01000a0100020101020102010100870b6f626a656374436c61737330040402636e",
    ),
    (
        LdapMessage(5, ModifyEntry("x", (AttributeChange(ModifyKind.REPLACE, "a", (b"b",)),))),
        "3019 020105 6614 040178 300f 300d 0a0102 3008 040161 3103040162",
    ),
    (
        LdapMessage(6, AddEntry("x", (("a", (b"b",)),))),
        "3014 020106 680f 040178 300a 3008 040161 3103 040162",
    ),
    (LdapMessage(7, DeleteEntry("dc=x")), "3009 020107 4a0464633d78"),
    (
        LdapMessage(8, RenameEntry("x", "y", parent="z")),
        "3011 020108 6c0c 040178 040179 0101ff 80017a",
    ),
    (LdapMessage(9, Abandon(8)), "3006 020109 500108"),
    (
        LdapMessage(10, ExtendedRequest("1.2")),
        "300a 02010a 7705 8003312e32",
    ),
    (
        LdapMessage(1, BindResponse(LdapResult(49, "", "no"))),
        "300e 020101 6109 0a0131 0400 04026e6f",
    ),
    (LdapMessage(4, SearchEntry("x", ())), "300a 020104 6405 040178 3000"),
    (LdapMessage(4, SearchDone()), "300c 020104 6507 0a0100 0400 0400"),
]


@pytest.mark.parametrize(("message", "written"), VECTORS)
def test_vectors(message: LdapMessage, written: str) -> None:
    data = bytes.fromhex(written)
    assert message.encode().hex() == data.hex()
    assert LdapMessage.decode(data) == message


@given(messages)
def test_what_is_written_reads_back(message: LdapMessage) -> None:
    assert LdapMessage.decode(message.encode()) == message


@given(st.lists(messages, max_size=4), st.integers(1, 7))
def test_a_stream_in_pieces_gives_the_same_messages(sent: list[LdapMessage], step: int) -> None:
    data = b"".join(message.encode() for message in sent)
    stream, found = MessageStream(), []
    for at in range(0, len(data), step):
        stream.feed(data[at : at + step])
        found += [message for message, _ in stream.messages()]
    assert found == sent
    assert stream.pending == 0


@given(st.binary(max_size=80))
def test_garbage_raises_wire_errors_only(data: bytes) -> None:
    stream = MessageStream()
    stream.feed(b"\x30" + data)
    try:
        list(stream.messages())
        LdapMessage.decode(data)
    except WireError:
        return


@given(messages, st.integers(0, 200), st.integers(0, 255))
def test_a_changed_octet_raises_wire_errors_only(message: LdapMessage, at: int, octet: int) -> None:
    data = bytearray(message.encode())
    data[at % len(data)] = octet
    try:
        LdapMessage.decode(bytes(data))
    except WireError:
        return


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("48545450", "a message begins with 48, not 30: not LDAP at offset 0"),
        ("3080", "a message has a length of 0 octets at offset 1"),
        ("30850000000001", "a message has a length of 5 octets at offset 1"),
        ("308401000001", "a message of 16777223 bytes; at most 16777216 at offset 0"),
    ],
)
def test_the_beginning_of_a_message_is_checked_before_it_is_kept(data: str, reason: str) -> None:
    stream = MessageStream()
    stream.feed(bytes.fromhex(data))
    with pytest.raises(WireError, match=reason):
        list(stream.messages())


def test_offsets_count_from_the_beginning_of_the_stream() -> None:
    stream = MessageStream()
    stream.feed(LdapMessage(1, Unbind()).encode() + bytes.fromhex("30050201016200"))
    with pytest.raises(WireError, match="no operation has tag 62 at offset 12"):
        list(stream.messages())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("3003020101", "an operation is missing at offset 5"),
        ("30050201ff4200", "-1 is not the id of a message"),
        ("3006020101420001", "1 bytes after the end of a message"),
        ("300502010142000000", "2 bytes after the end of a message at offset 7"),
        ("3006020101420100", "1 bytes after the end of an operation"),
        ("300c020101600702010204008000", "version 2 of LDAP, not 3"),
        ("300702010a6e020400", "no operation has tag 6e"),
        ("30050201010000", "no operation has tag 00"),
        (
            "301b 020101 6316 0400 0a0103 0a0100 020100 020100 010100 870161 3000",
            "3 is not a search scope",
        ),
        (
            "3016 020105 6611 040178 300c 300a 0a0107 3005 040161 3100",
            "7 is not an operation of a change",
        ),
        ("3013 020101 630e 0400 0a0100 0a0100 020100 020100", "typesOnly is missing"),
    ],
)
def test_messages_that_are_wrong(data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        LdapMessage.decode(bytes.fromhex(data.replace(" ", "")))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("300c 020105 6607 040178 3002 0000", "a change has tag 00, not 30"),
        ("300c 020105 6807 040178 3002 0000", "an attribute has tag 00, not 30"),
        ("3013 020105 680e 040178 3009 3007 040161 3102 0000", "a value has tag 00, not 04"),
        ("3009 020101 4200 a002 0000", "a control has tag 00, not 30"),
        ("3010 020102 600b 020103 0400 a304 0400 0000", "a SASL token has tag 00, not 04"),
        (
            "301d 020101 6318 0400 0a0100 0a0100 020100 020100 010100 870161 3002 0000",
            "an attribute has tag 00, not 04",
        ),
        ("3010 020101 650b 0a010a 0400 0400 a302 0000", "a URI has tag 00, not 04"),
    ],
)
def test_end_of_contents_octets_do_not_end_a_list(data: str, reason: str) -> None:
    """Only the definite form of a length is allowed (RFC 4511 5.1), so tag 0 is an element."""
    with pytest.raises(WireError, match=reason):
        LdapMessage.decode(bytes.fromhex(data.replace(" ", "")))


def test_an_id_out_of_range_is_not_written() -> None:
    with pytest.raises(ValueError, match="-1 is not the id of a message"):
        LdapMessage(-1, Unbind()).encode()


def test_attribute_names_of_an_entry_have_no_case() -> None:
    entry = SearchEntry("x", (("objectClass", (b"top", b"mSMQQueue")),))
    assert entry.values("OBJECTCLASS") == (b"top", b"mSMQQueue")
    assert entry.values("cn") == ()


def test_passwords_and_tokens_are_not_shown() -> None:
    assert "secret" not in repr(SimpleBind("cn=a", b"secret"))
    assert "secret" not in repr(SaslBind("GSS-SPNEGO", b"secret"))
    assert "secret" not in repr(BindResponse(LdapResult(), b"secret"))


def test_results_in_words() -> None:
    assert str(LdapResult(32)) == "noSuchObject (32)"
    assert str(LdapResult(34, diagnostic="0000208F\0")) == "invalidDNSyntax (34): 0000208F"
    assert code_name(4711) == "result code 4711"


def test_a_diagnostic_message_need_not_be_utf_8() -> None:
    body = ber.enumerated(53) + ber.text("") + ber.octet_string(b"verweigert \xfc")
    message = LdapMessage.decode(ber.sequence(ber.integer(1), ber.element(SearchDone.TAG, body)))
    assert message.operation == SearchDone(
        LdapResult(53, "", "verweigert \N{REPLACEMENT CHARACTER}")
    )


# --- filters --------------------------------------------------------------------------------------


def deep(levels: int) -> Filter:
    node: Filter = Present("cn")
    for _ in range(levels):
        node = Not(node)
    return node


#: Contents written by hand from RFC 4511 4.5.1.7.
FILTERS = [
    ("(cn=a)", "a307 0402636e 040161"),
    ("(cn>=a)", "a507 0402636e 040161"),
    ("(cn<=a)", "a607 0402636e 040161"),
    ("(cn=*)", "8702636e"),
    ("(cn=a*b*c)", "a40f 0402636e 3009 800161 810162 820163"),
    ("(cn=*b*)", "a409 0402636e 3003 810162"),
    ("(cn:1.2:=a)", "a90c 8103312e32 8202636e 830161"),
    ("(&(a=*)(b=*))", "a006 870161 870162"),
    ("(|(a=*)(b=*))", "a106 870161 870162"),
    ("(!(a=*))", "a203 870161"),
    ("(:dn:1.2:=a)", "a90b 8103312e32 830161 8401ff"),
    ("(cn:=a)", "a907 8202636e 830161"),
]


@pytest.mark.parametrize(("text", "written"), FILTERS)
def test_filter_vectors(text: str, written: str) -> None:
    data = bytes.fromhex(written)
    assert encode_filter(parse_filter(text)).hex() == data.hex()
    assert decode_filter(BerReader(data)) == parse_filter(text)


def test_filters_have_a_depth() -> None:
    written = encode_filter(deep(MAXIMUM_DEPTH))
    assert decode_filter(BerReader(written)) == deep(MAXIMUM_DEPTH)
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        encode_filter(deep(MAXIMUM_DEPTH + 1))
    with pytest.raises(WireError, match="nested more than 64 deep"):
        decode_filter(BerReader(ber.element(0xA2, written)))


def test_a_hostile_value_stays_one_value() -> None:
    node = parse_filter(r"(&(cn=a\2a\28\29\5c\00)(x=1))")
    assert decode_filter(BerReader(encode_filter(node))) == node
    assert b"a*()\\\0" in encode_filter(node)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "no filter begins with tag 00"),
        ("a800", "no filter begins with tag a8"),
        ("a0020000", "no filter begins with tag 00"),
        ("a2088701618701620000", "after the end of a negated filter"),
        ("a30a0401610401620401630000", "after the end of a comparison"),
        ("a40504016130 00", "a substring comparison has pieces"),
        ("a40a040161300581000401 61", "after the end of substrings"),
        ("a9028300", "needs a rule or an attribute"),
    ],
)
def test_filters_that_are_wrong(data: str, reason: str) -> None:
    with pytest.raises(WireError, match=reason):
        decode_filter(BerReader(bytes.fromhex(data.replace(" ", ""))))


def test_changes_bring_their_controls() -> None:
    change = AttributeChange(ModifyKind.REPLACE, "nTSecurityDescriptor", (b"descriptor",))
    assert ModifyEntry("CN=a", (change,)).controls == ()
    assert ModifyEntry("CN=a", (change,), 4).controls == (sd_flags(SdFlags.DACL),)
    assert DeleteEntry("CN=a").controls == ()
    assert DeleteEntry("CN=a", tree=True).controls == (tree_delete,)


def test_a_logon_in_steps_brings_a_token() -> None:
    answer = LdapMessage(1, BindResponse(LdapResult(14), b"challenge"))
    assert LdapMessage.decode(answer.encode()) == answer
