"""Runs under the system's Python: loads an LDIF file into a Samba directory and dumps the result.

Usage: python3 samba_ldif.py SMB_CONF LDIF   (the dump goes to stdout)
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import ldb  # type: ignore[import-not-found]
from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB


def main(configuration: str, path: str) -> None:
    lp = LoadParm()
    lp.load(configuration)
    samdb = SamDB(session_info=system_session(), lp=lp)
    # Samba's reader does not know the version line, which ldapadd and ldifde take.
    text = Path(path).read_text("utf-8").removeprefix("version: 1\n\n")
    for changetype, message in samdb.parse_ldif(text):
        if changetype == ldb.CHANGETYPE_MODIFY:
            samdb.modify(message)
        else:
            samdb.add(message, ["relax:0"])
    found = samdb.search(
        expression="(|(objectClass=mSMQQueue)(objectClass=mSMQConfiguration)"
        "(objectClass=mSMQSiteLink)(objectClass=mSMQSettings))",
        base="",
        scope=ldb.SCOPE_SUBTREE,
        attrs=["*", "nTSecurityDescriptor", "parentGUID"],
        controls=["search_options:1:2"],
    )
    for message in found:
        print(f"dn:: {_text(str(message.dn).encode())}")
        for name in set(message.keys()) - {"dn"}:
            for value in message[name]:
                print(f"{name}:: {_text(bytes(value))}")
        print()


def _text(octets: bytes) -> str:
    """Samba's own writer shows GUIDs and descriptors as text."""
    return base64.b64encode(octets).decode("ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
