"""``mqis import`` of LDIF, ``mqis export --ldif`` and ``mqis publish``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import Result

from mqis.cli.tour.activedirectory import EXAMPLE, from_ldif
from mqis.cli.tour.guide import Guide
from mqis.protocol.errors import StorageError
from mqis.testing.activedirectory import ScriptedDomain
from mqis.testing.ldap import ScriptedAnswer
from mqis.wire.errors import MqisError
from mqis.wire.ldap.changes import AddEntry
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.ldif import LdifError
from mqis.wire.ldap.messages import LdapMessage
from mqis.wire.ldap.responses import AddResponse, LdapResult
from tests.cli.commands import run


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("estate") / "estate.db"
    result = run("import", EXAMPLE, "--store", store)
    assert result.exit_code == 0
    assert (
        "imported 1 enterprise, 3 sites, 3 networks, 2 links, 4 machines, 6 queues" in result.stdout
    )
    return store


def test_the_first_look(estate: Path) -> None:
    checked = run("check", "--store", estate)
    assert checked.exit_code in (0, 1)
    routes = run("routes", "--store", estate)
    assert routes.exit_code == 0
    assert "Berlin" in routes.stdout


def test_export_as_ldif_and_back(estate: Path, tmp_path: Path) -> None:
    written = run("export", "--ldif", tmp_path / "x.ldif", "--store", estate, "--json")
    named = run("export", tmp_path / "named.ldif", "--store", estate, "--json")
    assert (tmp_path / "named.ldif").read_bytes() == (tmp_path / "x.ldif").read_bytes()
    assert json.loads(named.stdout)["records"] == json.loads(written.stdout)["records"]
    assert json.loads(written.stdout)["records"] > 15
    text = (tmp_path / "x.ldif").read_text()
    assert "dn: CN=*)(cn\\=*,CN=msmq,CN=ber-app1,CN=Computers,DC=meridian,DC=example" in text
    again = run("import", tmp_path / "x.ldif", "--store", tmp_path / "y.db", "--json")
    assert json.loads(again.stdout)["objects"]["queue"] == 6


def test_an_export_needs_a_domain(demo_store: Path, tmp_path: Path) -> None:
    error = run("export", "--ldif", tmp_path / "x.ldif", "--store", demo_store).exception
    assert isinstance(error, StorageError)
    assert "--base DC=corp,DC=example" in str(error)
    assert not (tmp_path / "x.ldif").exists()
    for base in ("CN=x", "DC=a,,", ""):
        wrong = run("export", "--ldif", tmp_path / "x", "--base", base, "--store", demo_store)
        assert isinstance(wrong.exception, StorageError)


def test_a_wrong_line_leaves_no_store(tmp_path: Path) -> None:
    broken = tmp_path / "x.ldif"
    broken.write_text(EXAMPLE.read_text().replace("objectGUID:: m5es", "objectGUID:: m5e!"))
    error = run("import", broken, "--store", tmp_path / "d.db").exception
    assert isinstance(error, LdifError)
    assert str(error).startswith(f"{broken}, line 11: the value of objectGUID is not base64")
    assert not (tmp_path / "d.db").exists()


def test_arguments_that_do_not_go_together(tmp_path: Path) -> None:
    store = ("--store", tmp_path / "d.db")
    assert run("import", EXAMPLE, "--restore", *store).exit_code == 2
    assert run("import", "ldaps://a", EXAMPLE, *store).exit_code == 2
    assert run("import", EXAMPLE, tmp_path / "x.jsonl", *store).exit_code == 2
    assert run("import", "s3://bucket/x.ldif", *store).exit_code == 2
    assert run("export", "--ldif", "-", "--server", "x").exit_code == 2


def test_no_domain_controller_is_one_line(estate: Path, tmp_path: Path) -> None:
    for command in (("import", "ldap://127.0.0.1:1", "--store", tmp_path / "d.db"),
                    ("publish", "ldap://127.0.0.1:1", "--store", estate)):  # fmt: skip
        error = run(*command).exception
        assert isinstance(error, MqisError)
        assert "\n" not in str(error)
    assert not (tmp_path / "d.db").exists()


@pytest.mark.parametrize("with_right", [True, False])
def test_what_the_directory_refuses_is_an_exit_status(estate: Path, *, with_right: bool) -> None:
    def refuse(message: LdapMessage) -> ScriptedAnswer | None:
        if not isinstance(message.operation, AddEntry) or with_right:
            return None
        return [AddResponse(LdapResult(ResultCode.INSUFFICIENT_ACCESS_RIGHTS, "", "no right"))]

    async def published(*options: str) -> Result:
        async with ScriptedDomain.of("DC=meridian,DC=example") as server:
            for name in ("Amsterdam", "Berlin", "Mainframe"):
                server.add_site(name)
            for name in ("ams-route1", "ams-app1", "ber-route1", "ber-app1"):
                server.add_computer(name)
            server.on_message = refuse
            given = ["publish", server.url, "--method", "anonymous", "--store", str(estate)]
            return await asyncio.to_thread(run, *given, *options)

    planned = asyncio.run(published())
    assert planned.exit_code == 0
    assert "machine ams-app1: is made, with a new identifier" in planned.stdout
    for options in ((), ("--json",)):
        done = asyncio.run(published("--write", *options))
        assert done.exit_code == (0 if with_right else 1), done.output
        if not options:
            line = "machine ams-app1: is made" if with_right else "machine ams-app1: was refused: "
            assert line in done.stdout
            assert ("12 objects: was refused" in done.stdout) is not with_right
        else:
            told = json.loads(done.stdout)
            assert told["written"] == (12 if with_right else 0)
            actions = {(step["action"], "reason" in step) for step in told["steps"]}
            expected = ("create", False) if with_right else ("refused", True)
            assert actions == {("same_name", False), expected}


def test_the_step_of_the_tour() -> None:
    from_ldif(Guide(Console(quiet=True)))
