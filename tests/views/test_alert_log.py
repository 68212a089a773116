"""The alerts of the console: they fire when they have held, end, and are kept over a restart."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from mqis.enterprise.status import EnterpriseStatus, MemberState, MemberStatus
from mqis.server.monitoring.alerting import alert_rules
from mqis.server.monitoring.replicas import ReplicaStatus
from mqis.views.console.alerts import FILE, MOST_ENDED, AlertLog, SeenAlert

ROOT = Path(__file__).parents[2]

_REST = "a", True, "normal", "0" * 16, "0" * 16, 0, 0
COPY = ReplicaStatus("p1", "Delft", *_REST)
GOOD = MemberStatus("a", "pec", "Delft", "127.0.0.1", 1, 0, MemberState.READY, 1.0, "", (COPY,))


def taken(at: float, *servers: MemberStatus) -> EnterpriseStatus:
    return EnterpriseStatus("Acme", at, None, servers or (GOOD,))


def names(alerts: tuple[SeenAlert, ...]) -> list[tuple[str, str]]:
    return [alert.key for alert in alerts]


def test_an_alert_fires_when_it_has_held_for_as_long_as_the_rule_asks() -> None:
    log = AlertLog()
    down = replace(
        GOOD, name="b", state=MemberState.DOWN, reason="does not answer", partitions=None
    )
    held = alert_rules()["MqisServerDown"].held_s
    assert held == 120
    for at in (1000.0, 1000.0 + held - 1):
        log.observe(taken(at, GOOD, down))
        page = log.page()
        assert page.firing == ()
        assert ("MqisServerDown", "b") in names(page.pending)
    log.observe(taken(1000.0 + held, GOOD, down))
    (first, *_) = log.page().firing
    assert (first.key, first.since, first.text) == (
        ("MqisServerDown", "b"),
        1000.0,
        "does not answer",
    )
    log.observe(taken(1500.0))
    page = log.page()
    assert page.firing == page.pending == ()
    assert ("MqisServerDown", "b", 1500.0) in [(a.name, a.server, a.ended) for a in page.ended]


def test_what_passed_before_it_fired_leaves_no_trace() -> None:
    log = AlertLog()
    log.observe(taken(1.0, replace(GOOD, state=MemberState.STARTING)))
    log.observe(taken(2.0))
    assert log.page().ended == ()


@pytest.mark.parametrize(
    ("server", "alert", "text"),
    [
        (replace(GOOD, disk_free={"store": 63 << 20}), "MqisDiskFull", "63 MiB left for its store"),
        (
            replace(GOOD, partitions=(replace(COPY, authority=False),)),
            "MqisNoAuthority",
            "no authority is up for Delft",
        ),
        (
            replace(GOOD, partitions=(COPY, replace(COPY, id="p2", behind=7, behind_s=601.0))),
            "MqisReplicaBehind",
            "7 changes behind",
        ),
        (
            replace(GOOD, partitions=(replace(COPY, missing=3),)),
            "MqisChangesMissing",
            "3 changes are known and missing",
        ),
        (
            replace(GOOD, counters={"archive_lag_s": 3700.0, "archive_waiting": 2.0}),
            "MqisArchiveBehind",
            (
                "a: 2 files of the journal wait for the archive, the oldest for 62 min; its log "
                "says why"
            ),
        ),
    ],
)
def test_each_condition(server: MemberStatus, alert: str, text: str) -> None:
    log = AlertLog()
    log.observe(taken(0.0, server))
    log.observe(taken(7200.0, server))
    found = {each.name: each.text for each in log.page().firing}
    assert found[alert] == text
    sound = AlertLog()
    sound.observe(taken(0.0))
    sound.observe(taken(7200.0))
    assert sound.page().firing == ()


def test_counters_that_grow_within_the_window() -> None:
    log = AlertLog()

    def told(at: float, failures: float) -> list[tuple[str, str]]:
        log.observe(taken(at, replace(GOOD, counters={"logon_failures": failures})))
        return names(log.page().firing)

    assert told(0.0, 1000.0) == [], "what it counted before the console began"
    assert told(100.0, 1020.0) == []
    assert told(200.0, 1021.0) == [("MqisLogonsFail", "a")]
    assert told(200.0 + 901.0, 1021.0) == []
    assert told(1200.0, 3.0) == [], "it has restarted"


def test_a_full_resync_of_each_of_many_partitions_is_no_repeat() -> None:
    log = AlertLog()
    joined = replace(
        GOOD, partitions=tuple(ReplicaStatus(f"p{n}", f"Site{n}", *_REST) for n in range(20))
    )

    def told(at: float, rounds: float) -> list[tuple[str, str]]:
        log.observe(taken(at, replace(joined, counters={"sync0_rounds": rounds})))
        return names(log.page().firing)

    assert told(0.0, 0.0) == []
    assert told(100.0, 20.0) == [], "it has joined"
    assert told(200.0, 60.0) == [], "it was promoted, and exchanged its role"
    assert told(300.0, 61.0) == [("MqisFullResyncRepeats", "a")]
    alone = AlertLog()
    for at, rounds in ((0.0, 0.0), (100.0, 4.0)):
        alone.observe(taken(at, replace(GOOD, counters={"sync0_rounds": rounds})))
    assert names(alone.page().firing) == [("MqisFullResyncRepeats", "a")]


@pytest.mark.parametrize("name", ["MqisFullResyncRepeats", "MqisReplicationRefused"])
def test_what_planned_work_causes_is_told(name: str) -> None:
    text = alert_rules()[name].text
    assert "promoted, exchanges its role" in text
    assert "ends by itself" in text


def test_an_old_key_is_rotated_while_the_server_runs() -> None:
    text = alert_rules()["MqisSigningKeyOld"].text
    assert "mqis key rotate NAME" in text
    assert "docs/keys.md" in text


def test_the_text_of_a_rule_names_the_pages_that_its_links_lead_to() -> None:
    rules = alert_rules()
    text = rules["MqisServerDown"].text
    assert "replacing a lost server (docs/operations.md)" in text
    assert "(docs/stores.md)" in rules["MqisCommitsFail"].text
    for rule in rules.values():
        assert "`" not in rule.text, rule.name
        assert "](" not in rule.text, rule.name
        pages = set(re.findall(r"docs/[\w-]+\.md", rule.text))
        assert all((ROOT / page).exists() for page in pages), rule.name
        assert len(pages) == len(set(re.findall(r"\]\(([\w-]+\.md)", rule.meaning))), rule.name


def test_two_authorities() -> None:
    log = AlertLog()
    both = GOOD, replace(GOOD, name="b")
    log.observe(taken(0.0, *both))
    log.observe(taken(300.0, *both))
    found = {alert.key: alert.text for alert in log.page().firing}
    assert found["MqisTwoAuthorities", "b"] == "Delft: a and b say that they are its authority"


def test_alerts_survive_a_restart_and_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / FILE
    full = replace(GOOD, disk_free={"store": 1})
    log = AlertLog(file)
    for turn in range(MOST_ENDED + 5):
        log.observe(taken(10.0 * turn, full))
        log.observe(taken(10.0 * turn + 5))
    log.observe(taken(9000.0, full))
    assert len(log.page().ended) == MOST_ENDED
    again = AlertLog(file)
    assert again.page().firing == log.page().firing
    assert again.page().ended == log.page().ended
    assert file.stat().st_mode & 0o077 == 0
    again.observe(taken(9100.0))
    assert again.page().ended[0].since == 9000.0


@pytest.mark.parametrize("content", ["", "[]", "{", '{"format": "mqis alerts 1", "alerts": [1]}'])
def test_a_file_that_is_no_list_of_alerts_is_ignored(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    assert AlertLog(tmp_path / FILE).page().firing == ()
    alien = {"name": "Other", "server": "a", "text": "", "since": 1, "ended": None, "firing": True}
    kept = {"format": "mqis alerts 1", "alerts": [alien]}
    (tmp_path / FILE).write_text(json.dumps(kept), encoding="utf-8")
    assert AlertLog(tmp_path / FILE).page().firing == ()
