"""mqis doctor on a server whose store is an Active Directory."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mqis.findings import Finding, Gravity
from mqis.protocol.activedirectory.schema import needed_names
from mqis.testing.activedirectory import ScriptedDomain
from mqis.views.doctor.examination import examine
from tests.runtime.activedirectory.estate import Estate
from tests.waiting import in_time


def findings(home: Path, schema: tuple[str, ...] = needed_names(), **keys: str) -> list[Finding]:
    """The findings about the directory; ``keys`` are added to the section of the store."""

    async def run() -> list[Finding]:
        async with ScriptedDomain.of() as server:
            Estate(server)
            server.schema = schema
            store = {"url": server.url, **keys}
            lines = "".join(f'{key} = "{value}"\n' for key, value in store.items())
            (home / "mqis.toml").write_text(f'[server]\nname = "SRV1"\n[store]\n{lines}')
            return await asyncio.to_thread(examine, home / "mqis.toml")

    found = asyncio.run(in_time(run()))
    return [finding for finding in found if finding.check == "active directory"]


def test_a_directory_that_answers(tmp_path: Path) -> None:
    connection, place = findings(tmp_path)
    assert (connection.gravity, place.gravity) == (Gravity.OK, Gravity.OK)
    assert "answers" in connection.what
    assert place.what.startswith("the account reads 1 machine and 2 queues")
    assert place.what.endswith("in Berlin")


def test_a_schema_without_a_class(tmp_path: Path) -> None:
    rest = tuple(name for name in needed_names() if name != "mSMQSiteLink")
    _, error, _ = findings(tmp_path, rest)
    assert error.gravity is Gravity.ERROR
    assert "the schema does not show mSMQSiteLink; extend it" in error.what


def test_a_directory_that_does_not(tmp_path: Path) -> None:
    (error,) = findings(tmp_path, url="ldap://127.0.0.1:1")
    assert error.gravity is Gravity.ERROR
    assert "127.0.0.1:1" in error.what


def test_a_password_that_others_read(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret")
    password.chmod(0o644)
    (error,) = findings(tmp_path, user="mqis", password_file=str(password))
    assert error.gravity is Gravity.ERROR
    assert error.what.endswith(f"others may read this password; chmod 600 {password}")
