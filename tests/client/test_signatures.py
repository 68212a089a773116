"""Signatures (MS-MQDS 3.2.1.2): what a server signs, hashed here by hand, and what it does not."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from mqis.client import DirectoryClient, Queue, SignatureError, equal
from mqis.client.results import DirectoryOperationResult
from mqis.testing.security import SharedSecret
from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant, VarType
from tests.client.peers import (
    OK,
    Operations,
    connected,
    run,
    text,
)
from tests.client.providers import Proving
from tests.client.samples import ONE, TWO

T = ObjectType
LABEL, QUOTA = PropId.Q_LABEL, PropId.Q_QUOTA

Use = Callable[[DirectoryClient], Awaitable[Any]]


async def label_of(client: DirectoryClient) -> Any:
    return await client.get(T.QUEUE, [LABEL], path="c14\\q")


# --- signatures -----------------------------------------------------------------------------------


def u32(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def utf16(words: str) -> bytes:
    return words.encode("utf-16-le")


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed method: how to call it, what is answered, and the bytes that are hashed."""

    use: Use
    operation: Operations
    answer: Callable[[Any, bytes], Any]
    hashed: Callable[[Any], bytes]


VALUES = (
    text("Orders"),
    PropVariant(VarType.I2, -2),
    PropVariant(VarType.CLSID, TWO),
    PropVariant(VarType.UI1, 1),
    PropVariant(VarType.UI4, 0x01020304),
)
IDS = [LABEL, PropId.Q_BASEPRIORITY, PropId.Q_TYPE, PropId.Q_JOURNAL, QUOTA]
HASHED = (
    u32(5)
    + u32(108)
    + utf16("Orders")
    + u32(106)
    + b"\xfe\xff"
    + u32(102)
    + TWO.raw
    + u32(104)
    + b"\x01"
    + u32(105)
    + b"\x04\x03\x02\x01"
)
DESCRIPTOR = b"a descriptor"


def security(request: Any, signature: bytes) -> dscomm.SecurityGot:
    padded = DESCRIPTOR.ljust(request.length, b"\0")
    return dscomm.SecurityGot(padded, len(DESCRIPTOR), signature, OK)


def hashed_security(request: Any) -> bytes:
    return u32(1) + DESCRIPTOR + bytes(request.length - len(DESCRIPTOR))


async def rows_of(client: DirectoryClient) -> Any:
    return [row async for row in client.lookup([LABEL, QUOTA])]


_ROWS = (text("a"), PropVariant(VarType.UI4, 1), text("bc"), PropVariant(VarType.UI4, 2))

SIGNED: dict[str, Signed] = {
    "get by path": Signed(
        lambda c: c.get(T.QUEUE, IDS, path="c14\\q"),
        dscomm.GET_PROPS,
        lambda _r, s: dscomm.PropsGot(VALUES, s, OK),
        lambda _r: HASHED,
    ),
    "get by guid": Signed(
        lambda c: c.get(T.QUEUE, IDS, guid=ONE),
        dscomm.GET_PROPS_GUID,
        lambda _r, s: dscomm.PropsGot(VALUES, s, OK),
        lambda _r: HASHED,
    ),
    "security by path": Signed(
        lambda c: c.get_security(T.QUEUE, 4, path="c14\\q"),
        dscomm.GET_OBJECT_SECURITY,
        security,
        hashed_security,
    ),
    "security by guid": Signed(
        lambda c: c.get_security(T.QUEUE, 4, guid=ONE),
        dscomm.GET_OBJECT_SECURITY_GUID,
        security,
        hashed_security,
    ),
    "security for a machine": Signed(
        lambda c: c.get_machine_security(T.QUEUE, 4, ONE),
        dscomm.QM_GET_OBJECT_SECURITY,
        security,
        hashed_security,
    ),
    "servers": Signed(
        lambda c: c.known_servers(),
        dscomm.CREATE_SERVERS_CACHE,
        lambda r, s: (
            dscomm.ServersCache(r.index, dscomm.StringPointer("HQ;\\10a"), s, OK)
            if r.index == 0
            else dscomm.ServersCache(r.index, None, s, 0xC00E0523)
        ),
        lambda _r: u32(2, 0) + utf16("HQ;\\10a"),
    ),
    "sites": Signed(
        lambda c: c.computer_sites("c14"),
        dscomm2.GET_COMPUTER_SITES,
        lambda _r, s: dscomm2.ComputerSites((ONE, TWO), s, OK),
        lambda _r: u32(1, 65, 32) + ONE.raw + TWO.raw,
    ),
    "extended by path": Signed(
        lambda c: c.get_extended(T.QUEUE, PropId.Q_OBJ_SECURITY, path="c14\\q"),
        dscomm2.GET_PROPS_EX,
        lambda _r, s: dscomm.PropsGot((PropVariant(VarType.BLOB, DESCRIPTOR),), s, OK),
        lambda _r: u32(1, 1102) + DESCRIPTOR,
    ),
    "extended by guid": Signed(
        lambda c: c.get_extended(T.MACHINE, PropId.QM_SIGN_PKS, guid=ONE),
        dscomm2.GET_PROPS_GUID_EX,
        lambda _r, s: dscomm.PropsGot((PropVariant(VarType.BLOB, b"keys"),), s, OK),
        lambda _r: u32(1, 239) + b"keys",
    ),
    "global catalogs": Signed(
        lambda c: c.global_catalogs("example"),
        dscomm2.GET_GC_LIST_IN_DOMAIN,
        lambda _r, s: dscomm2.GCList("10gc1,10gc2", s, OK),
        lambda _r: u32(1, 65, 22) + utf16("10gc1,10gc2"),
    ),
}
#: S_DSLookupNext is called until it gives nothing, which is signed as well.
_PAGES = (_ROWS, ())


def lookup_signed() -> Signed:
    asked: list[int] = []

    def page(_request: Any, signature: bytes) -> dscomm.LookupGot:
        return dscomm.LookupGot(_PAGES[len(asked) - 1], signature, OK)

    def hashed(_request: Any) -> bytes:
        asked.append(1)
        if len(asked) > 1:
            return u32(0)
        return u32(4, 108) + utf16("a") + u32(105, 1) + u32(108) + utf16("bc") + u32(105, 2)

    return Signed(rows_of, dscomm.LOOKUP_NEXT, page, hashed)


async def use_signed(signed: Signed, falsify: Callable[[bytes], bytes] | None = None) -> Any:
    peer = Proving()

    def line(_call: object, request: Any) -> Any:
        digest = hashlib.md5(signed.hashed(request)).digest()
        signature = peer.sign(digest if falsify is None else falsify(digest))
        return signed.answer(request, signature)

    peer.lines[signed.operation] = line
    async with peer, connected(peer.address, gss=SharedSecret()) as client:
        return await signed.use(client)


def _marked(name: str) -> Any:
    rows = {
        "get by path": ("MQDS-3.1.4.7-53",),
        "get by guid": ("MQDS-3.1.4.7-53",),
        "security by path": ("MQDS-3.1.4.11-51",),
        "security by guid": ("MQDS-3.1.4.11-51",),
        "security for a machine": ("MQDS-3.1.4.11-51",),
        "servers": ("MQDS-3.1.4.20-52",),
        "sites": ("MQDS-3.3.4.1-51",),
    }.get(name, ())
    return pytest.param(name, marks=[pytest.mark.req(*rows)] if rows else [])


class TestSignatures:
    @pytest.mark.parametrize("name", [_marked(name) for name in SIGNED])
    @pytest.mark.req("MQDS-3.2.1.2-01")
    def test_what_the_server_signed_is_taken(self, name: str) -> None:
        assert run(use_signed(SIGNED[name]))

    @pytest.mark.parametrize("name", [_marked(name) for name in SIGNED])
    @pytest.mark.req("MQDS-3.2.1.2-01", "MQDS-3.2.1.2-02")
    def test_what_it_did_not_sign_is_not(self, name: str) -> None:
        with pytest.raises(SignatureError, match="for other data"):
            run(use_signed(SIGNED[name], lambda digest: digest[::-1]))

    @pytest.mark.req("MQDS-3.1.4.18-52", "MQDS-3.2.1.2-01")
    def test_rows_of_a_lookup(self) -> None:
        """The columns stand once for each object; an empty reply is a count of zero."""
        assert run(use_signed(lookup_signed())) == [_ROWS[:2], _ROWS[2:]]
        with pytest.raises(SignatureError):
            run(use_signed(lookup_signed(), lambda digest: digest[::-1]))

    @pytest.mark.req("MQDS-3.2.1.2-02")
    def test_events_report_an_error_and_drop_the_data(self) -> None:
        async def main() -> None:
            peer = Proving()

            def line(_call: object, request: Any) -> dscomm.PropsGot:
                values = (text("Orders"),) * len(request.ids)
                return dscomm.PropsGot(values, peer.sign(bytes(16)), OK)

            def page(_call: object, _request: Any) -> dscomm.LookupGot:
                return dscomm.LookupGot((text("Orders"),), peer.sign(bytes(16)), OK)

            peer.lines |= {dscomm.GET_PROPS: line, dscomm.LOOKUP_NEXT: page}
            async with peer, connected(peer.address, gss=SharedSecret()) as client:
                for filters in ([equal("Pathname", "c14\\q")], None):
                    outcome = await client.events.read_directory(Queue, filters, ["Label"])
                    assert outcome.status is DirectoryOperationResult.GENERIC_ERROR
                    assert outcome.value is None
                    assert isinstance(outcome.error, SignatureError)
                assert peer.names[-1] == "S_DSLookupEnd"

        run(main())

    def test_a_signature_that_is_forged_ends_the_session(self) -> None:
        """The context takes no more of them; the next call proves the server anew."""

        async def main() -> None:
            peer = Proving()
            forged = [True]

            def line(_call: object, _request: Any) -> dscomm.PropsGot:
                digest = hashlib.md5(u32(1, 108) + utf16("Orders")).digest()
                signature = peer.sign(digest)
                return dscomm.PropsGot(
                    (text("Orders"),), bytes(len(signature)) if forged else signature, OK
                )

            peer.lines[dscomm.GET_PROPS] = line
            async with peer, connected(peer.address, gss=SharedSecret()) as client:
                with pytest.raises(SignatureError, match="wrong"):
                    await label_of(client)
                assert not client.usable
                forged.clear()
                assert await label_of(client) == {LABEL: text("Orders")}

        run(main())

    def test_no_signature_at_all(self) -> None:
        async def main() -> None:
            lines = {dscomm.GET_PROPS: dscomm.PropsGot((text("Orders"),), b"", OK)}
            async with (
                Proving(lines) as peer,
                connected(peer.address, gss=SharedSecret()) as client,
            ):
                with pytest.raises(SignatureError):
                    await label_of(client)

        run(main())
