"""``mqis delete``: dependents shown, questions asked, slips refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from mqis.protocol.errors import DirectoryError
from mqis.views.deletion.carrying_out import DeletionRefused
from mqis.views.presentation.properties import PropertyError
from mqis.wire.errors import MqisError
from mqis.wire.hresult import HResult
from tests.cli.commands import run
from tests.cli.running import ALICE, BOB, PASSWORDS, Running, prepare, serving


@pytest.fixture(scope="module")
def server(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("server")
    prepare(directory, demo_store)
    with serving(directory, "--json") as running:
        yield running


def asked(server: Running, *arguments: str, user: str = ALICE) -> Result:
    login = ("--user", user, "--server", server.address)
    return run(*arguments, *login, stdin=PASSWORDS[user])


def done(server: Running, *arguments: str) -> str:
    result = asked(server, *arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def told(server: Running, *arguments: str) -> Any:
    return json.loads(done(server, *arguments, "--json"))


def machine_with_queues(server: Running, name: str, site: str = "Berlin") -> None:
    done(server, "create", "machine", name, f"site_id={site}", "os=Windows server")
    for queue in ("a", "b"):
        done(server, "create", "queue", f"{name}\\{queue}", "label=x")


def queues_of(server: Running, machine: str) -> list[str]:
    found = told(server, "lookup", "queue")
    return [row["path"] for row in found if row["path"].startswith(f"{machine}\\")]


def test_a_machine_takes_its_queues_along(server: Running) -> None:
    machine_with_queues(server, "del-m1")
    plan = told(server, "delete", "machine", "del-m1", "--dry-run")
    assert plan["dry_run"]
    assert plan["counts"] == {"first": {"queue": 2}, "along": {}, "left": {}}
    assert sorted(queue["path"] for queue in plan["first"]) == ["del-m1\\a", "del-m1\\b"]
    assert len(queues_of(server, "del-m1")) == 2

    text = done(server, "delete", "machine", "del-m1", "--yes")
    assert "2 queues would be orphaned and will be deleted first:" in text
    assert "  queue del-m1\\a" in text
    assert text.endswith("deleted machine del-m1\n")
    assert queues_of(server, "del-m1") == [], "they would have no machine"


def test_nothing_is_deleted_without_a_yes(server: Running) -> None:
    machine_with_queues(server, "del-m2")
    error = asked(server, "delete", "machine", "del-m2").exception
    assert isinstance(error, MqisError)
    assert "--yes" in str(error)
    assert len(queues_of(server, "del-m2")) == 2
    assert told(server, "get", "machine", "del-m2")["path"] == "del-m2"


@pytest.mark.parametrize(("answer", "is_there"), [(False, True), (True, False)])
def test_a_terminal_is_asked(
    server: Running, monkeypatch: pytest.MonkeyPatch, answer: bool, is_there: bool
) -> None:
    path = f"ams-app1\\asked-{answer}"
    done(server, "create", "queue", path, "label=x")
    questions: list[str] = []

    def confirm(question: str, **_options: object) -> bool:
        questions.append(question)
        return answer

    monkeypatch.setattr("mqis.cli.output.is_terminal", lambda: True)
    monkeypatch.setattr("typer.confirm", confirm)
    assert asked(server, "delete", "queue", path).exit_code == (0 if answer else 1)
    assert questions == [f"Delete queue {path}?"]
    assert (asked(server, "get", "queue", path).exit_code == 0) is is_there


def test_a_site_without_servers_takes_machines_queues_and_links_along(server: Running) -> None:
    done(server, "create", "site", "Delmenhorst", "psc=nobody")
    machine_with_queues(server, "del-m3", "Delmenhorst")
    done(server, "create", "link", "neighbor1=Delmenhorst", "neighbor2=Berlin", "actual_cost=7")
    plan = told(server, "delete", "site", "Delmenhorst", "--dry-run")
    assert plan["counts"] == {
        "first": {"link": 1},
        "along": {"machine": 1, "queue": 2},
        "left": {},
    }
    assert plan["danger"] is None
    text = done(server, "delete", "site", "Delmenhorst", "--yes")
    assert "1 machine, 2 queues will go with it at every server:" in text
    assert queues_of(server, "del-m3") == []
    assert asked(server, "get", "machine", "del-m3").exit_code == 1
    assert not [row for row in told(server, "lookup", "link") if row["cost"] == 7]


def test_a_gate_leaves_the_site_that_names_it(server: Running) -> None:
    machine_with_queues(server, "del-gate", "Berlin")
    done(server, "create", "site", "Gated", "psc=nobody", "gates=del-gate")
    plan = told(server, "delete", "machine", "del-gate", "--dry-run")
    assert [one["path"] for one in plan["left"]] == ["Gated"]
    text = done(server, "delete", "machine", "del-gate", "--yes")
    assert "1 site will stay without it:\n  site Gated (gates)\n" in text


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("enterprise", "Meridian", "the whole directory is unusable"),
        ("site", "Berlin", "the site has directory servers (ber-dir1"),
        ("machine", "ams-dir1", "ams-dir1 is a directory server"),
    ],
)
def test_slips_are_refused(server: Running, kind: str, name: str, reason: str) -> None:
    for options, text in ((("--yes",), reason), (("--force", "Paris"), "'Paris' is not its name")):
        error = asked(server, "delete", kind, name, *options).exception
        assert isinstance(error, DeletionRefused), options
        assert text in str(error)
        assert f"--force {name!r}" in str(error)
    assert reason in told(server, "delete", kind, name, "--dry-run")["danger"]


def test_force_with_the_name_deletes_a_site_with_servers(server: Running) -> None:
    text = done(server, "delete", "site", "chicago", "--force", "CHICAGO")
    assert "1 directory server will be expelled:\n  chi-dir1\n" in text
    assert asked(server, "get", "site", "Chicago").exit_code == 1


def test_the_server_decides_who_may(server: Running) -> None:
    error = asked(server, "delete", "machine", "ber-app1", "--yes", user=BOB).exception
    assert isinstance(error, DirectoryError)
    assert error.hresult == HResult.MQ_ERROR_ACCESS_DENIED


# --- create ---------------------------------------------------------------------------------------

CHOSEN = "0b0b0b0b-1111-2222-3333-444444444444"


def test_an_identifier_that_the_server_would_ignore_is_an_error(server: Running) -> None:
    error = asked(server, "create", "queue", "ams-app1\\chosen", f"id={CHOSEN}").exception
    assert isinstance(error, PropertyError)
    assert "mqis undelete" in str(error)
    assert asked(server, "get", "queue", "ams-app1\\chosen").exit_code == 1
    made = told(
        server, "create", "machine", "chosen", f"id={CHOSEN}", "site_id=Berlin", "os=unknown"
    )
    assert made["id"] == CHOSEN


def test_force_takes_no_option_for_a_name(server: Running) -> None:
    """It was told of an unexpected argument, which was the value of the option."""
    result = run("delete", "site", "Paris", "--force", "--server", server.address)
    assert result.exit_code == 2
    assert "it repeats the object's name, and --server is an option" in " ".join(
        result.output.replace("│", " ").split()
    )
