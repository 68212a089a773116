"""DCE/RPC over a plain socket: PDUs by hand, so that an attacker may send any of them."""

from __future__ import annotations

import socket
import struct
from types import TracebackType

from tests.waiting import DEADLINE_S

BIND, BIND_ACK, BIND_NAK, ALTER, ALTER_RESP, AUTH3 = 11, 12, 13, 14, 15, 16
REQUEST, RESPONSE, FAULT = 0, 2, 3
NTLM = 10
CONNECT, PACKET, INTEGRITY, PRIVACY = 2, 4, 5, 6
_NDR20 = bytes.fromhex("045d888aeb1cc9119fe808002b10486002000000")


def trailer(level: int, token: bytes, context_id: int = 0, kind: int = NTLM) -> bytes:
    """sec_trailer (MS-RPCE 2.2.2.11) and its token."""
    return struct.pack("<BBBBI", kind, level, 0, 0, context_id) + token


def pdu(kind: int, body: bytes, auth: bytes = b"", call_id: int = 1) -> bytes:
    length = max(0, len(auth) - 8)
    size = 16 + len(body) + len(auth)
    head = struct.pack("<BBBBIHHI", 5, 0, kind, 3, 0x10, size, length, call_id)
    return head + body + auth


def proposal(interface: bytes) -> bytes:
    """The body of a bind or alter_context: one interface, spoken in NDR20."""
    return struct.pack("<HHIB3xHBx", 5840, 5840, 0, 1, 0, 1) + interface + _NDR20


def token_of(data: bytes) -> bytes:
    (length,) = struct.unpack_from("<H", data, 10)
    return data[len(data) - length :] if length else b""


def with_level(data: bytes, level: int) -> bytes:
    """The same PDU, its authentication level another one."""
    (length,) = struct.unpack_from("<H", data, 10)
    at = len(data) - length - 8 + 1
    return data[:at] + bytes([level]) + data[at + 1 :]


class Line:
    """One connection to a server."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        """``source``: any address of loopback."""
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S, (source, 0))
        self._calls = 1

    def __enter__(self) -> Line:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """One PDU; nothing if the server closed the connection."""
        return read_pdu(self.socket)

    def call(self, opnum: int, stub: bytes) -> bytes:
        """A request without a signature; its answer."""
        self._calls += 1
        body = struct.pack("<IHH", len(stub), 0, opnum) + stub
        self.send(pdu(REQUEST, body, call_id=self._calls))
        return self.receive()


def read_pdu(connection: socket.socket) -> bytes:
    data = _exactly(connection, 16)
    if not data:
        return b""
    (size,) = struct.unpack_from("<H", data, 8)
    return data + _exactly(connection, size - 16)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except ConnectionError:
            return b""
        if not piece:
            return b""
        data += piece
    return data


def kind_of(data: bytes) -> int | None:
    return data[2] if data else None


def result_of(response: bytes) -> int:
    """The HRESULT at the end of the stub of a response."""
    assert kind_of(response) == RESPONSE, response.hex()
    result: int = struct.unpack_from("<I", response, len(response) - 4)[0]
    return result
