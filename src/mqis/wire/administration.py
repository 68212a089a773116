"""The administration interface of mqis: calls that no specification has.

The requests and answers of its operations are JSON documents in UTF-8
(``protocol.undeletion.messages``, ``protocol.sessions``). Clients of MS-MQDS never see it: it is
not registered with the endpoint mapper, and a server of another make refuses to bind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.ndr import U8, U32, Conformant, ConformantVarying, Parameters, Ref, Unique
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation, SyntaxId

SYNTAX = SyntaxId(Guid.parse("6d716973-61d4-4c0e-9a57-2f0c1e8b7d35"), 1)

#: Bytes of a request and of an answer.
MAX_REQUEST = 64 * 1024
MAX_ANSWER = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AdministrationCall:
    request: bytes


@dataclass(frozen=True, slots=True)
class AdministrationAnswer:
    """The answer, which is a document with the key "error" if the result is a failure."""

    answer: bytes | None
    result: int


def _operation(opnum: int, name: str) -> Operation[AdministrationCall, AdministrationAnswer]:
    """An operation that takes a document and returns one."""
    answer = ConformantVarying(U8, size_is="count", length_is="count", maximum=MAX_ANSWER)
    return Operation(
        opnum,
        name,
        Parameters(
            AdministrationCall,
            size=U32,
            request=Conformant(U8, size_is="size", maximum=MAX_REQUEST),
        ),
        Parameters(AdministrationAnswer, count=Ref(U32), answer=Ref(Unique(answer)), result=U32),
    )


UNDELETE = _operation(0, "Undelete")
SESSIONS = _operation(1, "Sessions")

ADMINISTRATION = InterfaceDescription("mqis_administration", SYNTAX, (UNDELETE, SESSIONS), opnums=2)
