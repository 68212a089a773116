"""``mqis deploy`` prints the files of deploy/, each as it is."""

from __future__ import annotations

import pytest

from mqis.cli.deploy import FILES, Deployed
from tests.cli.commands import run
from tests.docs.documents import ROOT


@pytest.mark.parametrize("name", list(Deployed))
def test_a_file_is_printed_as_it_is(name: Deployed) -> None:
    done = run("deploy", name)
    assert done.exit_code == 0
    assert done.stdout == (ROOT / "deploy" / FILES[name]).read_text("utf-8")


@pytest.mark.parametrize("name", list(Deployed))
def test_what_needs_a_clone_says_so(name: Deployed) -> None:
    told = run("deploy", name).stderr
    needs = name in (Deployed.CONTAINER, Deployed.COMPOSE)
    assert ("works in a clone of the repository only" in told) == needs
    assert len(told.splitlines()) == needs


def test_every_file_has_a_name() -> None:
    """Except those by which the Grafana of the compose file finds the dashboard."""
    files = (path for path in (ROOT / "deploy").rglob("*") if path.is_file())
    there = {path.relative_to(ROOT / "deploy").as_posix() for path in files}
    assert {name for name in there if "provisioning" not in name} == set(FILES.values())


def test_another_name_is_refused() -> None:
    done = run("deploy", "upstart")
    assert done.exit_code == 2
    assert "systemd" in done.stderr
