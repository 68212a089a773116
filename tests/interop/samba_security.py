"""Runs under the system's Python: what Samba makes of descriptors, texts and access checks.

One JSON document in, one out, so that a whole test run costs one process.

    in   {"descriptors": [hex], "sddl": [text], "checks": [[hex, [sid], [privilege], mask]]}
    out  {"descriptors": [view], "sddl": [hex], "checks": [granted or null], "rights": {name: n}}
"""

from __future__ import annotations

import json
import sys
from typing import Any

import samba
import samba.security
from samba.dcerpc import security
from samba.ndr import ndr_pack, ndr_unpack

#: STATUS_ACCESS_DENIED, STATUS_PRIVILEGE_NOT_HELD
REFUSALS = (0xC0000022, 0xC0000061)
PRIVILEGES = {
    "security": security.SEC_PRIV_SECURITY,
    "take_ownership": security.SEC_PRIV_TAKE_OWNERSHIP,
}
OBJECT_TYPES = (
    security.SEC_ACE_TYPE_ACCESS_ALLOWED_OBJECT,
    security.SEC_ACE_TYPE_ACCESS_DENIED_OBJECT,
    security.SEC_ACE_TYPE_SYSTEM_AUDIT_OBJECT,
)


def unpack(data: str) -> Any:
    return ndr_unpack(security.descriptor, bytes.fromhex(data))


def view(data: str) -> dict[str, Any]:
    sd = unpack(data)
    return {
        "control": sd.type,
        "owner": None if sd.owner_sid is None else str(sd.owner_sid),
        "group": None if sd.group_sid is None else str(sd.group_sid),
        "dacl": None if sd.dacl is None else [ace_view(ace) for ace in sd.dacl.aces],
        "sacl": None if sd.sacl is None else [ace_view(ace) for ace in sd.sacl.aces],
        "packed": ndr_pack(sd).hex(),
        "sddl": sd.as_sddl(),
    }


def ace_view(ace: Any) -> list[Any]:
    guids: list[str | None] = [None, None]
    if ace.type in OBJECT_TYPES:
        if ace.object.flags & security.SEC_ACE_OBJECT_TYPE_PRESENT:
            guids[0] = str(ace.object.type)
        if ace.object.flags & security.SEC_ACE_INHERITED_OBJECT_TYPE_PRESENT:
            guids[1] = str(ace.object.inherited_type)
    return [ace.type, ace.flags, ace.access_mask, *guids, str(ace.trustee)]


def pack_sddl(text: str) -> str:
    sd = security.descriptor.from_sddl(text, security.dom_sid("S-1-5-21-1-2-3"))
    packed: bytes = ndr_pack(sd)
    return packed.hex()


def check(data: str, sids: list[str], privileges: list[str], desired: int) -> int | None:
    token = security.token()
    token.sids = [security.dom_sid(sid) for sid in sids]
    token.num_sids = len(sids)
    for privilege in privileges:
        token.set_privilege(PRIVILEGES[privilege])
    try:
        granted: int = samba.security.access_check(unpack(data), token, desired)
    except samba.NTSTATUSError as error:
        if error.args[0] not in REFUSALS:
            raise
        return None
    return granted


def main() -> None:
    work = json.load(sys.stdin)
    rights = [name for name in dir(security) if name.startswith("SEC_ADS_")]
    answer = {
        "version": samba.version,
        "descriptors": [view(data) for data in work["descriptors"]],
        "sddl": [pack_sddl(text) for text in work["sddl"]],
        "checks": [check(*case) for case in work["checks"]],
        "rights": {name: getattr(security, name) for name in rights},
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
