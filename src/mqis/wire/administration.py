"""The administration interface of mqis: calls that no specification has.

It carries one operation, whose request and answer are JSON documents in UTF-8
(``protocol.undeletion.messages``). Clients of MS-MQDS never see it: it is not registered with the
endpoint mapper, and a server of another make refuses to bind it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid
from mqis.wire.ndr import U8, U32, Conformant, ConformantVarying, Parameters, Ref, Unique
from mqis.wire.rpc.operation import InterfaceDescription, Operation
from mqis.wire.rpc.syntax import SyntaxId

SYNTAX = SyntaxId(Guid.parse("6d716973-61d4-4c0e-9a57-2f0c1e8b7d35"), 1)

#: Bytes of a request and of an answer.
MAX_REQUEST = 64 * 1024
MAX_ANSWER = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class UndeleteCall:
    request: bytes


@dataclass(frozen=True, slots=True)
class UndeleteAnswer:
    """The answer, which is a document with the key "error" if the result is a failure."""

    answer: bytes | None
    result: int


UNDELETE: Operation[UndeleteCall, UndeleteAnswer] = Operation(
    0,
    "Undelete",
    Parameters(
        UndeleteCall,
        size=U32,
        request=Conformant(U8, size_is="size", maximum=MAX_REQUEST),
    ),
    Parameters(
        UndeleteAnswer,
        count=Ref(U32),
        answer=Ref(
            Unique(ConformantVarying(U8, size_is="count", length_is="count", maximum=MAX_ANSWER))
        ),
        result=U32,
    ),
)

ADMINISTRATION = InterfaceDescription("mqis_administration", SYNTAX, (UNDELETE,), opnums=1)
