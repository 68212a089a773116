"""A server that was killed: a sentence says so, on its page and in ``mqis show server``."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqis.config.nodes import Nodes, save_nodes
from mqis.enterprise.states import ProcessState, Supervised, Supervision, save_states
from mqis.enterprise.status import MemberState, MemberStatus
from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
from tests.cli.commands import run
from tests.enterprise.monitors import node
from tests.web.asking import Visitor

SENTENCE = "It is stopped: it was killed."


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    save_nodes(tmp_path, Nodes("Acme", (node("e", 1),)))
    states = {"e": Supervised(ProcessState.STOPPED, 1000.0, "it was killed")}
    save_states(tmp_path, Supervision("", True, states))
    return tmp_path


def test_the_page_says_it_in_a_sentence(stopped: Path) -> None:
    with running_console(ConsoleSettings(Places(stopped), port=0)) as url:
        page = Visitor(url).get("/servers/e")
    assert f"PSC of Delft. {SENTENCE} All servers" in " ".join(page.text.split())
    assert "Its replicas are not known while it is down." in page.text
    assert "0 partitions" not in page.text


def test_the_command_says_it_too_without_an_empty_table(stopped: Path) -> None:
    shown = run("show", "server", "e", "--run", stopped)
    assert shown.exit_code == 1
    assert shown.stdout.splitlines()[:2] == ["e", SENTENCE]
    assert "authority" not in shown.stdout


@pytest.mark.parametrize(
    ("state", "reason", "sentence"),
    [
        (MemberState.READY, "", ""),
        (MemberState.STOPPED, "", "It is stopped."),
        (MemberState.FAILED, "status 2: no key.", "It is failed: status 2: no key."),
        (MemberState.DOWN, "connection refused", "It does not answer: connection refused."),
        (MemberState.DOWN, "does not answer", "It does not answer."),
        (MemberState.UNREADABLE, "no such file", "Its store cannot be read: no such file."),
    ],
)
def test_every_absence_is_a_sentence(state: MemberState, reason: str, sentence: str) -> None:
    member = MemberStatus("a", "psc", "Delft", "127.0.0.1", None, 0, state, None, reason)
    assert member.absence_text == sentence
