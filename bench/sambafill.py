"""Runs under the system's Python: adds the entries of an LDIF file to a Samba directory.

Usage: python3 sambafill.py SMB_CONF LDIF. All in one transaction, while no server is running.
"""

from __future__ import annotations

import sys
from pathlib import Path

from samba.auth import system_session
from samba.param import LoadParm
from samba.samdb import SamDB


def main(configuration: str, path: str) -> None:
    lp = LoadParm()
    lp.load(configuration)
    samdb = SamDB(session_info=system_session(), lp=lp)
    samdb.transaction_start()
    # Samba's reader does not know the version line.
    text = Path(path).read_text("utf-8").removeprefix("version: 1\n\n")
    for _, message in samdb.parse_ldif(text):
        samdb.add(message, ["relax:0"])
    samdb.transaction_commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
