"""An RPC client that keeps no rules: a plain socket and PDUs put together by hand.

Stubs are impacket's, so that no line of ours encodes what is sent.
"""

from __future__ import annotations

import select
import socket
import struct
from types import TracebackType
from uuid import UUID

from impacket.dcerpc.v5.ndr import NDRCALL

from tests.interop import mqds_impacket as mqds
from tests.waiting import DEADLINE_S

FIRST, LAST = 1, 2
REQUEST, RESPONSE, FAULT, BIND, BIND_ACK = 0, 2, 3, 11, 12
MAX_FRAG = 5840
TOO_BUSY, NO_MEMORY = 0x1C01_0014, 0x1C00_001B
OK, INSUFFICIENT_RESOURCES = 0, 0xC00E_0027

_NDR20 = UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le + struct.pack("<I", 2)


def pdu(kind: int, flags: int, call_id: int, body: bytes) -> bytes:
    return (
        struct.pack("<BBBB4sHHI", 5, 0, kind, flags, b"\x10\0\0\0", 16 + len(body), 0, call_id)
        + body
    )


def bind() -> bytes:
    context = struct.pack("<HBB", 0, 1, 0) + mqds.DSCOMM + _NDR20
    return pdu(
        BIND, FIRST | LAST, 1, struct.pack("<HHIBBH", MAX_FRAG, MAX_FRAG, 0, 1, 0, 0) + context
    )


def request(opnum: int, stub: bytes, flags: int = FIRST | LAST, call_id: int = 2) -> bytes:
    return pdu(REQUEST, flags, call_id, struct.pack("<IHH", len(stub), 0, opnum) + stub)


class Fault(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(hex(status))
        self.status = status


class Attacker:
    """One connection, bound to dscomm; from any address of loopback that is asked for."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S, (source, 0))
        self._buffer = b""
        self.socket.sendall(bind())
        kind, _, _ = self._pdu()
        assert kind == BIND_ACK
        self.auth = bytes(20)

    def __enter__(self) -> Attacker:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, call: NDRCALL) -> None:
        """The request, without a wait for its answer."""
        self.socket.sendall(request(call.opnum, call.getData()))

    def has_answer(self) -> bool:
        return bool(self._buffer or select.select([self.socket], [], [], 0)[0])

    def answer(self) -> bytes:
        """The stub of the next response; ``Fault``, ``ConnectionError`` if there is none."""
        stub = b""
        while True:
            kind, flags, body = self._pdu()
            if kind == FAULT:
                raise Fault(struct.unpack_from("<I", body, 8)[0])
            assert kind == RESPONSE
            stub += body[8:]
            if flags & LAST:
                return stub

    def call(self, call: NDRCALL) -> bytes:
        self.send(call)
        return self.answer()

    def send_stub(self, opnum: int, stub: bytes) -> None:
        """A call of any length, in fragments, without a wait for its answer."""
        room = MAX_FRAG - 24
        for at in range(0, len(stub), room):
            flags = (0 if at else FIRST) | (LAST if at + room >= len(stub) else 0)
            self.socket.sendall(request(opnum, stub[at : at + room], flags))

    def begin_stub(self, size: int) -> int:
        """Fragments of a call that never ends; how many bytes until the server hung up."""
        part = bytes(4096)
        flags, sent = FIRST, 0
        try:
            while sent < size:
                self.socket.sendall(request(0, part, flags))
                flags, sent = 0, sent + len(part)
        except OSError:
            pass
        return sent

    def _pdu(self) -> tuple[int, int, bytes]:
        head = self._take(16)
        (size,) = struct.unpack_from("<H", head, 8)
        return head[2], head[3], self._take(size - 16)

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server hung up")
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    # --- methods ----------------------------------------------------------------------------------

    def validate(self) -> bytes:
        """S_DSValidateServer without a token: one more context handle, or ``Fault``."""
        call = mqds.S_DSValidateServer()
        call["pguidEnterpriseId"] = bytes(16)
        call["fSetupMode"] = call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = 0
        call["dwContext"] = 7
        stub = self.call(call)
        assert result_of(stub) in (OK, INSUFFICIENT_RESOURCES)
        self.auth = stub[:20] if result_of(stub) == OK else self.auth
        return stub

    def begin_lookup(self, *columns: int, sort: int = 0) -> int:
        self.send(lookup_begin(self.auth, columns, sort))
        return result_of(self.answer())


def lookup_begin(auth: bytes, columns: tuple[int, ...], sort: int = 0) -> NDRCALL:
    call = mqds.S_DSLookupBegin()
    call["pwcsContext"] = call["pRestriction"] = mqds.NULL
    call["pColumns"]["cCol"] = len(columns)
    call["pColumns"]["aCol"] = list(columns)
    if not sort:
        call["pSort"] = mqds.NULL
    else:
        key = mqds.MQSORTKEY()
        key["propColumn"], key["dwOrder"] = sort, 1
        call["pSort"]["cCol"] = 1
        call["pSort"]["aCol"] = [key]
    call["phServerAuth"] = mqds.handle(auth)
    return call


def get_props(auth: bytes, path: str, ids: tuple[int, ...]) -> NDRCALL:
    call = mqds.S_DSGetProps()
    call["dwObjectType"] = 1
    call["pwcsPathName"] = path + "\0"
    mqds.put_properties(call, {propid: mqds.variant(mqds.VT_NULL) for propid in ids})
    call["phServerAuth"] = mqds.handle(auth)
    call["pdwServerSignatureSize"] = 0
    return call


def result_of(stub: bytes) -> int:
    """The HRESULT that every answer of dscomm ends with."""
    (result,) = struct.unpack("<I", stub[-4:])
    assert isinstance(result, int)
    return result
