"""LDAP result codes as what a directory operation says (MS-MQDSSM 2.2.6), and as HRESULTs.

The text knows six outcomes. A refused access is GenericError: it is the account of the server that
lacks a right, and the caller, whose own rights were checked before, can do nothing about it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType


class DirectoryStatus(Enum):
    """The outcomes of a directory operation."""

    SUCCESS = "Success"
    OBJECT_NOT_FOUND = "ObjectNotFound"
    ATTRIBUTE_NOT_FOUND = "AttributeNotFound"
    OBJECT_ALREADY_EXISTS = "ObjectAlreadyExists"
    NOT_CONNECTED = "DirectoryNotConnected"
    GENERIC_ERROR = "GenericError"


#: busy and unavailable are outages, not errors of the operation.
_STATUS: Final = {
    0: DirectoryStatus.SUCCESS,
    16: DirectoryStatus.ATTRIBUTE_NOT_FOUND,
    32: DirectoryStatus.OBJECT_NOT_FOUND,
    51: DirectoryStatus.NOT_CONNECTED,
    52: DirectoryStatus.NOT_CONNECTED,
    68: DirectoryStatus.OBJECT_ALREADY_EXISTS,
}
_EXISTS: Final = {
    ObjectType.QUEUE: HResult.MQ_ERROR_QUEUE_EXISTS,
    ObjectType.MACHINE: HResult.MQ_ERROR_MACHINE_EXISTS,
}
_HRESULTS: Final = {
    DirectoryStatus.SUCCESS: HResult.MQ_OK,
    DirectoryStatus.OBJECT_NOT_FOUND: HResult.MQDS_OBJECT_NOT_FOUND,
    DirectoryStatus.ATTRIBUTE_NOT_FOUND: HResult.E_ADS_PROPERTY_NOT_FOUND,
    DirectoryStatus.NOT_CONNECTED: HResult.MQ_ERROR_NO_DS,
    DirectoryStatus.GENERIC_ERROR: HResult.MQ_ERROR_DS_ERROR,
}


def status_of(code: int) -> DirectoryStatus:
    """Returns the outcome that an LDAP result stands for; an unknown one is GenericError."""
    return _STATUS.get(code, DirectoryStatus.GENERIC_ERROR)


def hresult_of(code: int, object_type: ObjectType) -> HResult:
    """Returns what a caller of MS-MQDS gets when an LDAP operation on such an object says so."""
    status = status_of(code)
    if status is DirectoryStatus.OBJECT_ALREADY_EXISTS:
        return _EXISTS.get(object_type, HResult.MQ_ERROR_DS_ERROR)
    return _HRESULTS[status]
