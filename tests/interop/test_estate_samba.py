"""``mqis estate check`` on a Samba domain controller with one planted fault of each kind."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqis.admin.activedirectory.connecting import ConnectingOptions
from mqis.admin.activedirectory.estate.sources import check_directory
from mqis.cli.estate import repairs_of
from mqis.findings import CheckReport
from mqis.wire.ldap.changes import AddEntry
from tests.estate.planted import faults, sound
from tests.interop.samba_domain import PASSWORD, USER, load_entries, samba_domain

pytestmark = pytest.mark.interop

#: Faults whose repair takes people: an account, or a server that has to be installed.
BY_HAND = {"disabled_computer", "site_without_router"}


def possible() -> dict[str, list[AddEntry]]:
    """The faults that Samba lets in: it refuses a name that another account has."""
    return {check: each for check, each in faults().items() if check != "service_name_doubled"}


def load(directory: Path) -> None:
    planted = (entry for each in possible().values() for entry in each)
    load_entries(directory, (*sound(), *planted))


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with samba_domain(tmp_path_factory.mktemp("samba") / "one", before_start=load) as directory:
        yield directory


def examined(domain: Path) -> CheckReport:
    options = ConnectingOptions(
        ("ldaps://127.0.0.1",),
        USER,
        ca_file=domain / "private/tls/own.pem",
        server_name="dc1.corp.example",
        password_file=domain / "password",
    )
    (domain / "password").write_text(PASSWORD)
    (domain / "password").chmod(0o600)
    return asyncio.run(check_directory(options))


def test_planted_faults_are_found_and_the_repairs_mend_them(domain: Path) -> None:
    report = examined(domain)
    assert sorted(finding.check for finding in report.findings) == sorted(possible())
    assert (report.limits, report.unreadable) == ((), ())
    repairs = domain / "repairs.ldif"
    repairs.write_text(repairs_of(report), "utf-8")
    command = ["ldapmodify", "-x", "-H", "ldaps://127.0.0.1", "-D", USER, "-w", PASSWORD]
    done = subprocess.run(
        [*command, "-f", str(repairs)],
        env=os.environ | {"LDAPTLS_CACERT": str(domain / "private/tls/own.pem")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {finding.check for finding in examined(domain).findings} == BY_HAND
