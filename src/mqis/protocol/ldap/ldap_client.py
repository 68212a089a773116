"""The client's side of one LDAP connection, without I/O.

A program sends requests and gets a number for each. Answers arrive in any order; the machine keeps
them under their numbers until the program takes them:

    number = client.send(SearchRequest(...))     data_to_send() has the bytes
    client.receive(data)                         as bytes arrive
    client.take(number)                          the next answer, or None if there is none yet

Three rules protect the program from the server:

- **Memory.** Answers that wait count against a limit. ``wants_data`` turns false at the limit, and
  the driver stops reading. If another operation still waits for its first answer, reading goes on,
  since the program may need that one to go on itself; at four times the limit the operation with
  the most unread answers fails instead.
- **Order.** An answer has to fit its request. One for a request that was never sent ends the
  connection; one for a request that was given up is dropped.
- **Injection.** Nothing may follow the answer to StartTLS or a bind before the next request:
  whoever can write into the clear part of a connection could otherwise put answers into the
  protected part.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from mqis.protocol.ldap.errors import LdapConnectionLost, LdapError, LdapViolation
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, ModifyEntry, RenameEntry
from mqis.wire.ldap.controls import LdapControl
from mqis.wire.ldap.messages import MAXIMUM_ID, MAXIMUM_MESSAGE, LdapMessage, MessageStream
from mqis.wire.ldap.requests import (
    START_TLS,
    Abandon,
    ExtendedRequest,
    LdapRequest,
    SaslBind,
    SearchRequest,
    SimpleBind,
    TokenStream,
    Unbind,
    frame,
)
from mqis.wire.ldap.responses import (
    AddResponse,
    BindResponse,
    DeleteResponse,
    ExtendedResponse,
    ModifyResponse,
    RenameResponse,
    SearchDone,
    SearchEntry,
    SearchReference,
)

#: The answers that each request may get; the last one ends it.
_ANSWERS: Final[dict[type[LdapRequest], tuple[type, ...]]] = {
    SimpleBind: (BindResponse,),
    SaslBind: (BindResponse,),
    SearchRequest: (SearchEntry, SearchReference, SearchDone),
    ModifyEntry: (ModifyResponse,),
    AddEntry: (AddResponse,),
    DeleteEntry: (DeleteResponse,),
    RenameEntry: (RenameResponse,),
    ExtendedRequest: (ExtendedResponse,),
}
#: How far over its limit the machine goes for an operation that still waits.
_OVERDRAFT: Final = 4


class SecurityLayer(Protocol):
    """Signs or encrypts what goes over a connection after a SASL bind, in order."""

    def wrap(self, data: bytes) -> bytes: ...
    def unwrap(self, token: bytes) -> bytes:
        """The protected bytes; raises ``AuthenticationError`` if they are not the peer's next."""


@dataclass(slots=True)
class _Pending:
    """An operation whose answers have not all been taken."""

    request: LdapRequest
    answers: deque[tuple[LdapMessage, int]] = field(default_factory=deque)
    size: int = 0
    done: bool = False
    failure: LdapError | None = None

    @property
    def waits(self) -> bool:
        return not self.answers and not self.done


class LdapClient:
    """One connection; see above."""

    def __init__(
        self, *, buffer_limit: int = MAXIMUM_MESSAGE, message_limit: int = MAXIMUM_MESSAGE
    ) -> None:
        self._buffer_limit = buffer_limit
        self._stream = MessageStream(message_limit)
        self._tokens: TokenStream | None = None
        self._layer: SecurityLayer | None = None
        self._pending: dict[int, _Pending] = {}
        self._outgoing = bytearray()
        self._last = 0
        self._buffered = 0

    # --- requests ---------------------------------------------------------------------------------

    def send(self, request: LdapRequest, controls: tuple[LdapControl, ...] = ()) -> int:
        """Queues a request and returns its number, by which its answers are taken."""
        if self._exclusive or (_is_exclusive(request) and self.outstanding):
            raise ValueError("a bind or StartTLS is possible only while no other operation runs")
        if self._last == MAXIMUM_ID:
            raise LdapConnectionLost("this connection has used up its message numbers")
        data = LdapMessage(self._last + 1, request, controls).encode()
        self._last += 1
        if type(request) in _ANSWERS:
            self._pending[self._last] = _Pending(request)
        self._outgoing += data if self._layer is None else frame(self._layer.wrap(data))
        return self._last

    def give_up(self, number: int) -> None:
        """Forgets an operation, and tells the server so if it still works on it."""
        pending = self._pending.pop(number, None)
        if pending is None:
            return
        self._buffered -= pending.size
        if not pending.done and not self._exclusive and not _is_exclusive(pending.request):
            self.send(Abandon(number))

    def unbind(self) -> None:
        """Queues the end of the connection; everything outstanding is forgotten."""
        self._pending.clear()
        self._buffered = 0
        self.send(Unbind())

    def data_to_send(self) -> bytes:
        data = bytes(self._outgoing)
        self._outgoing.clear()
        return data

    # --- answers ----------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        """The number of operations that the server has not finished."""
        return sum(not pending.done for pending in self._pending.values())

    @property
    def buffered(self) -> int:
        """The size of all answers that have arrived and were not taken."""
        return self._buffered

    @property
    def wants_data(self) -> bool:
        return not self.is_full or self._somebody_waits

    def receive(self, data: bytes) -> None:
        """Takes bytes of the server. After an error the connection has to be closed."""
        if self._tokens is None or self._layer is None:
            self._stream.feed(data)
            self._take_messages()
            return
        for token in self._tokens.feed(data):
            self._stream.feed(self._layer.unwrap(token))
            self._take_messages()

    @property
    def is_full(self) -> bool:
        """True if more answers wait than the limit allows."""
        return self._buffered > self._buffer_limit

    def arrived(self, number: int) -> tuple[int, bool]:
        """How many answers to a request wait to be taken, and whether no more will come."""
        pending = self._pending[number]
        return len(pending.answers), pending.done

    def last(self, number: int) -> LdapMessage | None:
        """The answer that ends a request, if it has arrived; it is not taken."""
        pending = self._pending[number]
        return pending.answers[-1][0] if pending.done and pending.answers else None

    def take(self, number: int) -> LdapMessage | None:
        """The next answer to a request, None if there is none yet; the last one ends it."""
        pending = self._pending[number]
        if pending.failure is not None:
            del self._pending[number]
            raise pending.failure
        if not pending.answers:
            return None
        message, size = pending.answers.popleft()
        pending.size -= size
        self._buffered -= size
        if pending.done and not pending.answers:
            del self._pending[number]
        return message

    def expect_silence(self) -> None:
        """Refuses bytes that came in the clear, as the last step before protection begins."""
        if self._stream.pending:
            raise LdapViolation("bytes in the clear follow the answer to StartTLS or a bind")

    def protect(self, layer: SecurityLayer) -> None:
        """Wraps everything from now on, in both directions."""
        self.expect_silence()
        self._layer = layer
        self._tokens = TokenStream()

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _somebody_waits(self) -> bool:
        return any(pending.waits for pending in self._pending.values())

    @property
    def _exclusive(self) -> bool:
        return any(_is_exclusive(p.request) and not p.done for p in self._pending.values())

    def _take_messages(self) -> None:
        for message, size in self._stream.messages():
            if message.id == 0:
                raise self._notice(message)
            if message.id > self._last:
                raise LdapViolation(f"the server answers request {message.id}, which was not sent")
            pending = self._pending.get(message.id)
            if pending is not None and not pending.done:
                self._keep(pending, message, size)

    def _keep(self, pending: _Pending, message: LdapMessage, size: int) -> None:
        allowed = _ANSWERS[type(pending.request)]
        kind = type(message.operation)
        if kind not in allowed:
            asked = type(pending.request).__name__
            raise LdapViolation(f"the server answers {asked} by {kind.__name__}")
        if _is_exclusive(pending.request) and self._stream.pending:
            raise LdapViolation("bytes follow the answer to a bind or StartTLS without a request")
        pending.answers.append((message, size))
        pending.size += size
        pending.done = kind is allowed[-1]
        self._buffered += size
        if self._buffered > _OVERDRAFT * self._buffer_limit and self._somebody_waits:
            self._overflow()

    def _overflow(self) -> None:
        """Gives up the operation with the most unread answers, so that the others can go on."""
        number, largest = max(self._pending.items(), key=lambda item: item[1].size)
        if not largest.done:
            self.send(Abandon(number))
        self._buffered -= largest.size
        largest.failure = LdapError(
            f"{largest.size} bytes of answers to one request were not read in time; "
            "ask for fewer entries at once, or read them faster"
        )
        largest.answers.clear()
        largest.size, largest.done = 0, True

    @staticmethod
    def _notice(message: LdapMessage) -> LdapError:
        if isinstance(message.operation, ExtendedResponse):
            return LdapConnectionLost(f"the server ends the connection: {message.operation.result}")
        return LdapViolation("the server sends an answer with number 0")


def _is_exclusive(request: LdapRequest) -> bool:
    """Returns whether a request changes the protection of the connection."""
    if isinstance(request, ExtendedRequest):
        return request.name == START_TLS
    return isinstance(request, SimpleBind | SaslBind)
