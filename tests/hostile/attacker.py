"""An attacker with impacket: calls of MS-MQDS that come back with their result.

No line of our client or of our stubs is used. Accounts have their names as passwords.
"""

from __future__ import annotations

from uuid import UUID

from impacket.dcerpc.v5.rpcrt import (
    RPC_C_AUTHN_LEVEL_NONE,
    RPC_C_AUTHN_LEVEL_PKT_INTEGRITY,
    DCERPC_v5,
)

from tests.interop import mqds_impacket as mqds
from tests.interop.mqds_impacket import NULL, PROPVARIANT, ask, connect, put_properties

QUEUE, MACHINE, SITE, CN, ENTERPRISE, USER, LINK = 1, 2, 3, 5, 6, 7, 8
OK = 0
DENIED, NOT_FOUND, TOO_MUCH = 0xC00E0025, 0xC00E050F, 0xC00E0027
NO_MACHINE, ILLEGAL_VALUE = 0xC00E000D, 0xC00E0018

Properties = dict[int, PROPVARIANT]


class Attacker:
    """One connection, anonymous or as one of the accounts."""

    def __init__(self, port: int, account: str = "") -> None:
        level = RPC_C_AUTHN_LEVEL_PKT_INTEGRITY if account else RPC_C_AUTHN_LEVEL_NONE
        self.dce: DCERPC_v5 = connect(port, account, level)

    def create(
        self, kind: int, path: str | None, properties: Properties, descriptor: bytes | None = None
    ) -> int:
        call = mqds.S_DSCreateObject()
        call["dwObjectType"] = kind
        call["pwcsPathName"] = NULL if path is None else path + "\0"
        call["dwSDLength"] = 0 if descriptor is None else len(descriptor)
        call["SecurityDescriptor"] = NULL if descriptor is None else descriptor
        put_properties(call, properties)
        call["pObjGuid"] = NULL
        return self._result(call)

    def change(self, kind: int, target: str | UUID, properties: Properties) -> int:
        if isinstance(target, UUID):
            call = mqds.S_DSSetPropsGuid()
            call["pGuid"] = target.bytes_le
        else:
            call = mqds.S_DSSetProps()
            call["pwcsPathName"] = target + "\0"
        call["dwObjectType"] = kind
        put_properties(call, properties)
        return self._result(call)

    def delete(self, kind: int, target: str | UUID) -> int:
        if isinstance(target, UUID):
            call = mqds.S_DSDeleteObjectGuid()
            call["pGuid"] = target.bytes_le
        else:
            call = mqds.S_DSDeleteObject()
            call["pwcsPathName"] = target + "\0"
        call["dwObjectType"] = kind
        return self._result(call)

    def secure(self, kind: int, path: str, information: int, data: bytes) -> int:
        """S_DSSetObjectSecurity: parts of a descriptor, or a public key."""
        call = mqds.S_DSSetObjectSecurity()
        call["dwObjectType"] = kind
        call["pwcsPathName"] = path + "\0"
        call["SecurityInformation"] = information
        call["pSecurityDescriptor"] = data
        call["nLength"] = len(data)
        return self._result(call)

    def _result(self, call: object) -> int:
        return int(ask(self.dce, call)["ErrorCode"])
