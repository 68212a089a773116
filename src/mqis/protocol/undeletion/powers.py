"""The power over others that a deleted object gets back."""

from __future__ import annotations

from mqis.protocol.directory.powers import service_kind
from mqis.protocol.undeletion.lost import LostObject
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def power_of(lost: LostObject, *, is_primary: bool) -> str:
    """Returns what an administrator should know before an object comes back; mostly nothing."""
    if lost.obj is None:
        return ""
    if is_primary or (lost.type is ObjectType.MACHINE and service_kind(lost.obj)):
        return "a server: its role and its key count again"
    if lost.type is ObjectType.USER and lost.obj.value(PropId.U_SIGN_CERT):
        return "a user: the certificates count again"
    return ""
