"""Signed calls by hand: of a user, or of nobody, whose logon NTLM allows and whose key is known."""

from __future__ import annotations

import struct

from impacket.dcerpc.v5.ndr import NDRCALL

from tests.hostile import plain_rpc as rpc
from tests.hostile.plain_rpc import Line
from tests.interop import mqds_impacket as mqds
from tests.runtime.authentication.handmade import EOL, FLAGS, Client, message, negotiate


class Signer:
    """One connection that is logged on at level integrity."""

    def __init__(
        self,
        port: int,
        source: str = "127.0.0.1",
        client: Client | None = None,
        *,
        group: int = 0,
    ) -> None:
        """Without a ``client``, the logon is that of nobody. ``group``: the association to join."""
        self.line = Line(port, source)
        self._calls = self.contexts = 0
        self._user = client
        self._client = client or Client("", "", "")
        #: The association group that the server has told.
        self.group = group
        assert self.log_on()

    def __enter__(self) -> Signer:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.line.socket.close()

    def log_on(self) -> bool:
        """Adds a security context; returns whether the server accepted it."""
        number, kind = self.contexts, rpc.ALTER if self.contexts else rpc.BIND
        first = rpc.trailer(rpc.INTEGRITY, negotiate(), context_id=number)
        proposal = rpc.proposal(mqds.DSCOMM)
        proposal = proposal[:4] + struct.pack("<I", self.group) + proposal[8:]
        try:
            self.line.send(rpc.pdu(kind, proposal, first))
            answer = self.line.receive()
            if rpc.kind_of(answer) not in (rpc.BIND_ACK, rpc.ALTER_RESP):
                return False
            (self.group,) = struct.unpack_from("<I", answer, 20)
            trailer = rpc.trailer(rpc.INTEGRITY, self._proof(answer), context_id=number)
            self.line.send(rpc.pdu(rpc.AUTH3, bytes(4), trailer))
        except ConnectionError:
            return False
        self.contexts += 1
        return True

    def _proof(self, answer: bytes) -> bytes:
        if self._user is None:
            self._client.session_key = bytes(16)
            return message(FLAGS, lm=b"", nt=b"", domain="", user="")
        return self._user.authenticate(rpc.token_of(answer), EOL)

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
