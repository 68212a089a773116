"""Findings as commands print them: remarks counted and capped, and the one scale of gravity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqis.cli.findings import doctor_json, journal_json, show_areas, show_journal, show_report
from mqis.findings import Area, CheckReport, Finding, Gravity, Limit, Subject, worst
from mqis.protocol.journal import ChainState, chain_finding
from mqis.server.monitoring.verdict import HealthVerdict
from mqis.storage.journal.checking import JournalCheck
from mqis.views.doctor.examination import findings_of
from mqis.wire.ldap.ldif import write_ldif
from tests.cli.commands import run
from tests.estate.planted import faults, sound


def test_remarks_of_an_import_are_counted_and_three_entries_named(tmp_path: Path) -> None:
    path = tmp_path / "estate.ldif"
    entries = [*sound(), *(entry for planted in faults().values() for entry in planted)]
    path.write_text("".join(write_ldif(entries)), "utf-8")
    done = run("import", path, "--store", tmp_path / "x.db")
    as_json = run("import", path, "--store", tmp_path / "y.db", "--json")

    notes = {note["what"]: note for note in json.loads(as_json.stdout)["notes"]}
    many = notes["objects were read without their permissions (nTSecurityDescriptor)"]
    one = notes["machines name a site that is not there"]
    assert (many["count"], len(many["entries"])) == (14, 14)
    assert one == {
        "what": "machines name a site that is not there",
        "count": 1,
        "entries": ["CN=msmq,CN=WS6,OU=Messaging,DC=corp,DC=example"],
    }
    told = done.output.splitlines()
    assert f"note: 14 x {many['what']}: {', '.join(many['entries'][:3])} and 11 more" in told
    assert f"note: 1 x {one['what']}: {one['entries'][0]}" in told


@pytest.mark.parametrize(
    ("gravity", "label", "colour"),
    [
        (Gravity.OK, "ok", "green"),
        (Gravity.NOTE, "note", "green"),
        (Gravity.WARNING, "warning", "amber"),
        (Gravity.ERROR, "error", "red"),
    ],
)
def test_each_gravity_has_its_words(gravity: Gravity, label: str, colour: str) -> None:
    assert (gravity.label, gravity.colour) == (label, colour)


def test_a_report_fails_by_its_gravest_finding() -> None:
    area = Area("ports")
    fine, told = area.ok("free"), area.note("in use")
    late, bad = area.warning("not there", "look"), area.error("taken", "stop it")
    assert worst([]) is Gravity.OK
    assert [worst(found) for found in ([told, fine], [fine, late, told], [late, bad, fine])] == [
        Gravity.NOTE,
        Gravity.WARNING,
        Gravity.ERROR,
    ]
    assert not CheckReport((fine, told, late)).failed
    assert CheckReport((fine, bad, late)).failed
    assert {f.check for f in (fine, told, late, bad)} == {"ports"}
    assert (bad.todo, bad.is_fault, late.is_fault) == ("stop it", True, False)


def test_a_finding_covers_the_numbers_from_first_to_last() -> None:
    span = Finding("missing", Gravity.ERROR, "gone", first=3, last=1 << 64)
    assert [span.covers(n) for n in (2, 3, 1 << 64, (1 << 64) + 1)] == [False, True, True, False]
    assert span.length == (1 << 64) - 2
    begun = Finding("missing", Gravity.ERROR, "gone", first=3)
    assert (begun.length, begun.covers(3)) == (0, False)


def test_a_finding_in_words() -> None:
    found = Finding("x", Gravity.NOTE, "what", "todo", "where", "detail")
    assert str(found) == "where: what: detail"
    assert str(Area("x").ok("what")) == "what"
    objects = Subject("queue", "a\\b", "1"), Subject("link", None, "2")
    assert [str(each) for each in objects] == ["queue a\\b", "link 2"]
    assert Finding("x", Gravity.NOTE, "what", objects=objects).names == ("a\\b", "2")


def test_a_table_of_each_check_is_capped_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    queues = [
        Finding("open", Gravity.ERROR, "anybody may send", f"close {n}", f"q{n}", f"d{n}", "spam")
        for n in range(3)
    ]
    objects = (Subject("queue", "q9"),)
    alone = Finding("gone", Gravity.ERROR, "no machine", "delete it", "q9", objects=objects)
    limits = Limit("named", "no names here", "ask a server", 4), Limit("", "old", "export it")
    counts = {"queue": 9, "settings": 2, "link": 1, "site": 0}
    report = CheckReport((*queues, alone), limits, counts, ("x: no GUID",))
    show_report(report, 2)
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "checked 9 queues, 2 settings, 1 link"
    words = [line.split() for line in lines]
    at = lines.index("open, 3 findings: anybody may send")
    assert lines[at + 1] == "users see: spam"
    assert words[at + 2] == ["where", "detail", "what", "to", "do"]
    assert words[at + 4 : at + 6] == [["q0", "d0", "close", "0"], ["q1", "d1", "close", "1"]]
    assert lines[at + 6] == "and 1 more: --limit 3"
    at = lines.index("gone, 1 finding: no machine")
    assert words[at + 1] == ["object", "detail", "what", "to", "do"]
    assert lines[-3:] == [
        "cannot read: x: no GUID",
        "cannot tell: named: no names here (4 left out); ask a server",
        "cannot tell: old; export it",
    ]


def test_the_doctor_s_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    area = Area("ports")
    one = CheckReport((area.ok("free"), area.warning("busy", "wait")), server="a")
    two = CheckReport((area.error("taken", "stop it"), area.error("shut", "open it")))
    show_areas([one, two], everything=False)
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == ["server", "about", "what", "what", "to", "do"]
    assert shown[2:] == [
        ["a", "warning", "ports", "busy", "wait"],
        ["all", "error", "ports", "taken", "stop", "it"],
        ["all", "error", "ports", "shut", "open", "it"],
        ["1", "in", "order,", "1", "warning,", "2", "errors"],
    ]
    show_areas([one], everything=True)
    assert "ok" in capsys.readouterr().out
    assert json.dumps(doctor_json(one)) == json.dumps({
        "server": "a",
        "findings": [
            {"severity": "ok", "area": "ports", "what": "free", "todo": ""},
            {"severity": "warning", "area": "ports", "what": "busy", "todo": "wait"},
        ],
    })  # fmt: skip


def test_the_doctor_sends_to_the_log_where_the_verdict_has_no_remedy() -> None:
    passing = Finding("resync", Gravity.WARNING, "it catches up")
    known = Finding("contents", Gravity.ERROR, "they differ", "'mqis diff' finds the objects")
    found = findings_of(HealthVerdict((known, passing)))
    assert [(f.check, f.gravity, f.todo) for f in found] == [
        ("health", Gravity.ERROR, "'mqis diff' finds the objects"),
        ("health", Gravity.WARNING, "see its log"),
    ]
    (good,) = findings_of(HealthVerdict((), "all equal"))
    assert (good.check, good.gravity, good.what) == ("health", Gravity.OK, "all equal")


def test_a_notice_of_a_journal_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    torn = chain_finding(ChainState.TORN, "segment-2", 2, 2, "half a record")
    pruned = chain_finding(ChainState.PRUNED, "segment-2", 1, 1, "begins at a snapshot")
    result = JournalCheck((pruned, torn), 1, 7, 0)
    assert journal_json(result, [torn])["findings"] == [
        {
            "state": state,
            "fault": fault,
            "file": "segment-2",
            "segments": [number, number],
            "text": text,
        }
        for state, fault, number, text in (
            ("pruned", False, 1, "begins at a snapshot"),
            ("torn", True, 2, "half a record"),
        )
    ]
    show_journal(result, [torn])
    assert capsys.readouterr().out.splitlines() == [
        "torn: segment-2: half a record",
        "pruned: segment-2: begins at a snapshot",
        "1 fault",
    ]
