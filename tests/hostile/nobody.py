"""NTLM's anonymous logon by hand: somebody who logs on as nobody, and signs with its known key."""

from __future__ import annotations

import struct

from impacket.dcerpc.v5.ndr import NDRCALL

from tests.hostile import plain_rpc as rpc
from tests.hostile.plain_rpc import Line
from tests.interop import mqds_impacket as mqds
from tests.runtime.authentication.handmade import FLAGS, Client, message, negotiate


class Nobody:
    """One connection that is logged on without a name, at level integrity."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.line = Line(port, source)
        self._contexts = self._calls = 0
        self._client = Client("", "", "")
        self._client.session_key = bytes(16)
        assert self.log_on()

    def __enter__(self) -> Nobody:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.line.socket.close()

    def log_on(self) -> bool:
        """Adds a security context; returns whether the server accepted it."""
        number, kind = self._contexts, rpc.ALTER if self._contexts else rpc.BIND
        first = rpc.trailer(rpc.INTEGRITY, negotiate(), context_id=number)
        self.line.send(rpc.pdu(kind, rpc.proposal(mqds.DSCOMM), first))
        if rpc.kind_of(self.line.receive()) not in (rpc.BIND_ACK, rpc.ALTER_RESP):
            return False
        last = message(FLAGS, lm=b"", nt=b"", domain="", user="")
        trailer = rpc.trailer(rpc.INTEGRITY, last, context_id=number)
        self.line.send(rpc.pdu(rpc.AUTH3, bytes(4), trailer))
        self._contexts += 1
        return True

    def call(self, call: NDRCALL) -> bytes:
        """A call that is signed in the first context; the PDU of its answer."""
        stub = call.getData()
        stub += bytes(-len(stub) % 16)
        trailer = rpc.trailer(rpc.INTEGRITY, bytes(16))
        body = struct.pack("<IHH", len(stub), 0, call.opnum) + stub
        data = rpc.pdu(rpc.REQUEST, body, trailer, call_id=self._calls + 2)[:-16]
        self.line.send(data + self._client.signature(self._calls, data))
        self._calls += 1
        return self.line.receive()


def validation() -> NDRCALL:
    """S_DSValidateServer without a token, which makes a context handle."""
    call = mqds.S_DSValidateServer()
    call["pguidEnterpriseId"] = bytes(16)
    call["fSetupMode"] = call["dwClientBuffMaxSize"] = call["dwClientBuffSize"] = 0
    call["dwContext"] = 7
    return call
