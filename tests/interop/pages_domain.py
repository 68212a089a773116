"""A domain controller as the pages about Active Directory have one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.estate.planted import faults, sound
from tests.interop.samba_domain import PASSWORD, USER, load_entries, samba_domain

READER, READER_PASSWORD = "reader", "Passw0rd.2"


def _fill(directory: Path) -> None:
    """Loads an estate with one fault, and makes the ordinary account that the pages log on with."""
    load_entries(directory, (*sound(), *faults()["open_queue"]))
    conf = str(directory / "etc/smb.conf")
    created = ["samba-tool", "user", "create", READER, READER_PASSWORD, "-s", conf]
    subprocess.run(created, capture_output=True, check=True)


@contextmanager
def served_domain(directory: Path) -> Iterator[dict[str, str]]:
    """Gives the environment of a reader: the authority of the certificate, and two passwords."""
    with samba_domain(directory, before_start=_fill) as domain:
        certificate = str(domain / "private/tls/own.pem")
        yield {
            "SSL_CERT_FILE": certificate,
            "LDAPTLS_CACERT": certificate,
            "ADMINISTRATOR": USER,
            "ADMINISTRATOR_PASSWORD": PASSWORD,
            "READER_PASSWORD": READER_PASSWORD,
        }
