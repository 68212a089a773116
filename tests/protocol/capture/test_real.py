"""Captures of real conversations between our own servers and clients."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from examples.capture.scene import CLIENT, PEC, PSC
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.capture.decoder import decode_rows
from mqis.protocol.capture.row import DecodedRow
from mqis.runtime.authentication.acceptor import PyspnegoAuthenticator
from mqis.runtime.authentication.account import Account, MemoryAccounts, nt_hash
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.authentication.initiator import PyspnegoInitiator
from mqis.runtime.rpc.rpc_client import Credentials as Wanted
from mqis.testing.pcap import write_pcap
from mqis.wire.pcap.capture_file import walk_capture
from mqis.wire.pcap.captured import Captured
from mqis.wire.pcap.tcp_udp import TCP
from mqis.wire.security.sid import Sid
from tests.protocol.capture.recordings import enterprise, oletx, validated
from tests.runtime.oletx.endpoints import DOMAIN, PASSWORD


@pytest.fixture(scope="module")
def rows() -> list[DecodedRow]:
    return list(decode_rows(enterprise()))


def of(rows: list[DecodedRow], protocol: str) -> list[DecodedRow]:
    return [row for row in rows if row.protocol == protocol]


def test_nothing_is_left_undecoded(rows: list[DecodedRow]) -> None:
    assert [row.error for row in rows if row.error] == []
    assert not [row for row in rows if row.kind == "unrecognised"]
    found = {row.protocol for row in rows}
    assert found == {"mqsd", "rpc", "epmapper", "dscomm", "mqqb", "mqdsrp", "ixnremote", "cmp"}


def test_discovery_and_the_way_to_the_directory(rows: list[DecodedRow]) -> None:
    asked, answered = of(rows, "mqsd")
    assert (asked.source, asked.destination, asked.destination_port) == (CLIENT, PEC, 1801)
    assert answered.machines == ("pec1",)
    _, mapped = of(rows, "epmapper")
    assert mapped.summary.startswith("dscomm at ")


def test_a_change_is_followed_from_the_client_to_the_other_server(rows: list[DecodedRow]) -> None:
    asked = next(row for row in of(rows, "dscomm") if "orders" in row.summary)
    assert asked.kind == "S_DSCreateObject request"
    assert asked.summary == "queue pec1\\orders, PROPID_Q_LABEL"
    sent = next(row for row in of(rows, "mqdsrp") if "create pec1\\orders" in row.summary)
    assert (sent.kind, sent.source, sent.destination) == ("ChangePropagation", PEC, PSC)
    assert sent.time_ns is not None
    assert asked.time_ns is not None
    assert sent.time_ns > asked.time_ns
    body = json.loads(sent.detail)["body"]
    (change,) = body["changes"]
    assert change["path"] == "pec1\\orders"
    assert sent.seq == int(change["seq"], 16)
    assert str(sent.partition) == change["partition"]
    assert json.loads(sent.detail)["signed"] is True


def test_the_replication_of_a_new_server(rows: list[DecodedRow]) -> None:
    kinds = Counter((row.kind, row.source) for row in of(rows, "mqdsrp"))
    assert kinds["SyncRequest", PSC] >= 2
    assert kinds["SyncReply", PEC] >= 2
    assert kinds["PscAck", PSC] >= 1
    managers = {row.source: row.queue_manager for row in of(rows, "mqdsrp")}
    assert managers.keys() == {PEC, PSC}
    assert len(set(managers.values())) == 2
    kinds_of_session = {row.kind for row in of(rows, "mqqb")}
    assert kinds_of_session >= {
        "EstablishConnection request",
        "EstablishConnection response",
        "ConnectionParameters request",
        "ConnectionParameters response",
    }


def test_boxcars_and_stubs_of_a_real_oletx_session() -> None:
    rows = list(decode_rows(oletx()))
    assert [row.error for row in rows if row.error] == []
    calls = [row.kind for row in of(rows, "ixnremote") if row.kind.endswith(" request")]
    assert set(calls) == {
        "PokeW request",
        "BuildContextW request",
        "NegotiateResources request",
        "SendReceive request",
        "TearDownContext request",
    }
    answers = [row for row in of(rows, "ixnremote") if row.kind.endswith(" response")]
    assert len(answers) == len(calls)
    assert {row.summary.rpartition("OK")[1] for row in answers} == {"OK"}
    messages = of(rows, "cmp")
    tags = Counter((row.kind, row.source) for row in messages)
    assert tags == {
        ("CONNECTION_REQ", PSC): 1,
        ("USER_MESSAGE", PSC): 1,
        ("USER_MESSAGE", PEC): 1,
        ("DISCONNECT", PSC): 1,
        ("DISCONNECTED", PEC): 1,
    }
    there, back = [json.loads(r.detail) for r in messages if r.kind == "USER_MESSAGE"]
    assert (there["user_msg_type"], bytes.fromhex(there["data"])) == (1, b"prepare")
    assert (back["user_msg_type"], bytes.fromhex(back["data"])) == (2, b"prepare")
    assert (there["is_master"], back["is_master"]) == (1, 0)
    sent = Counter(row.call_id for row in messages if row.source == PSC)
    carried = Counter(
        row.call_id for row in rows if row.kind == "SendReceive request" and row.source == PSC
    )
    assert sent == carried


def test_callbacks_of_a_real_validation() -> None:
    rows = list(decode_rows(validated()))
    assert [row.error for row in rows if row.error] == []
    during = [row for row in rows if row.kind.split()[0] in ("S_DSValidateServer", "S_InitSecCtx")]
    assert [(row.kind, row.to_server) for row in during] == [
        ("S_DSValidateServer request", True),
        *[("S_InitSecCtx request", False), ("S_InitSecCtx response", True)] * 2,
        ("S_DSValidateServer response", False),
    ]
    assert len({row.call_id for row in during}) == 1
    got = next(row for row in rows if row.kind == "S_DSGetProps response")
    assert json.loads(got.detail)["values"][0]["value"]


@pytest.mark.parametrize("level", [AuthLevel.INTEGRITY, AuthLevel.PRIVACY], ids=lambda x: x.name)
def test_protected_calls_are_read_or_said_to_be_encrypted(level: AuthLevel) -> None:
    account = Account(DOMAIN, "alice", Sid.parse("S-1-5-21-1-2-3-1000"), nt_hash(PASSWORD))
    authenticator = PyspnegoAuthenticator(
        MemoryAccounts([account]), "AMS", DOMAIN, names=["ams-dir1"]
    )
    initiator = PyspnegoInitiator(LogonCredentials("alice", DOMAIN, PASSWORD))
    wanted = Wanted(initiator, AuthType.NTLM, level, "ams-dir1")
    rows = list(decode_rows(validated(wanted, authenticator)))
    assert [row.error for row in rows if row.error] == []
    calls = [row for row in rows if row.protocol == "dscomm"]
    assert [row.kind for row in calls if "InitSecCtx" in row.kind]
    hidden = all(row.summary.endswith("the stub is encrypted") for row in calls)
    assert hidden == (level is AuthLevel.PRIVACY)
    if not hidden:
        assert "queue ams-app1\\orders, PROPID_Q_LABEL" in {row.summary for row in calls}
    assert next(row for row in rows if row.kind == "auth3")


def test_the_order_of_packets_does_not_matter(rows: list[DecodedRow]) -> None:
    """Those of a few milliseconds change places, and many are there twice."""
    random = Random(1)
    packets = [each for each in walk_capture(enterprise()) if isinstance(each, Captured)]
    segments = [each for each in packets if each.data[23] == TCP]
    twice = packets + random.sample(segments, len(segments) // 3)
    twice.sort(key=lambda each: each.number + random.uniform(0, 12))
    mixed = write_pcap(((each.time_ns or 0, each.data) for each in twice), nanoseconds=True)
    assert Counter(map(_said, decode_rows(mixed))) == Counter(map(_said, rows))


def _said(row: DecodedRow) -> tuple[object, ...]:
    return row.source, row.source_port, row.protocol, row.kind, row.summary, row.detail, row.error


def test_a_file_that_is_cut_anywhere(rows: list[DecodedRow]) -> None:
    data = enterprise()
    random = Random(2)
    known = {_said(row) for row in rows}
    for size in random.sample(range(len(data)), 12):
        for row in decode_rows(data[:size]):
            assert row.error is not None or _said(row) in known
