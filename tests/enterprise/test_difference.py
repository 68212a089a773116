"""The difference between an enterprise file and what is there, and its way into the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mqis.config.errors import ConfigError
from mqis.enterprise.adopting import adopt
from mqis.enterprise.difference import (
    Action,
    PlanDifference,
    Present,
    PresentEntry,
    compare,
    expelled_servers,
    impossible,
    without_gates,
)
from mqis.enterprise.kept_plan import LEFT, PLAN, carried_out, forget, keep, leave
from mqis.enterprise.plan import EntryKind, RunPlan, entries_of, parse_plan

FILE = """\
[enterprise]
name = "Acme"

[[site]]
name = "Delft"

[[site]]
name = "Leiden"

# two offices
[[link]]
sites = ["Delft", "Leiden"]
cost = 7                        # leased

[[server]]
name = "del-dir1"
site = "Delft"
role = "pec"

[[server]]
name = "lei-dir1"
site = "Leiden"
role = "psc"

[[server]]
name = "lei-dir2"
site = "Leiden"
role = "bsc"

[[machine]]
name = "app1"
site = "Delft"

[[queue]]
path = 'app1\\orders'
label = "Orders"

[[account]]
name = "admin"
administrator = true

[options.log]
level = "info"
"""


def plan_of(text: str) -> RunPlan:
    return parse_plan(tomllib.loads(text))


def present_of(plan: RunPlan) -> dict[EntryKind, dict[str, PresentEntry]]:
    """What is there after a plan was carried out."""
    return {
        kind: {
            key: PresentEntry(e.name, dict(e.attributes))
            for key, e in entries_of(plan, kind).items()
        }
        for kind in EntryKind
    }


BEFORE = plan_of(FILE)


def difference(
    old: str, new: str, present: Present | None = None, **options: Any
) -> PlanDifference:
    assert old in FILE or not old
    changed = plan_of(FILE.replace(old, new) if old else FILE + new)
    return compare(changed, BEFORE, present or present_of(BEFORE), **options)


def told(found: PlanDifference) -> list[tuple[str, str, str, str]]:
    return [(s.action.value, s.kind.value, s.name, s.detail) for s in found.steps]


def test_the_same_file_makes_no_difference() -> None:
    assert difference("", "") == PlanDifference((), (), ())


@pytest.mark.parametrize(
    ("old", "new", "step"),
    [
        ("cost = 7", "cost = 9", ("change", "link", "Delft - Leiden", "cost 7 -> 9")),
        (
            'label = "Orders"',
            'label = ""',
            ("change", "queue", "app1\\orders", "label Orders -> none"),
        ),
        (
            'label = "Orders"',
            'label = "Orders"\njournal = true',
            ("change", "queue", "app1\\orders", "journal no -> yes"),
        ),
        (
            'level = "info"',
            'level = "debug"',
            ("change", "options", "log.level", "value info -> debug"),
        ),
        (
            "",
            "[[machine]]\nname = 'desk1'\nsite = 'Leiden'\naddress = '10.0.0.9'\n",
            ("add", "machine", "desk1", "site Leiden, address 10.0.0.9"),
        ),
        (
            "",
            "[[server]]\nname = 'lei-dir3'\nsite = 'Leiden'\nrole = 'bsc'\nrouting = true\n",
            ("add", "server", "lei-dir3", "site Leiden, role bsc, routing"),
        ),
        ("", "[[account]]\nname = 'clerk'\n", ("add", "account", "ACME\\clerk", "")),
    ],
)
def test_what_the_file_changes_is_a_step(old: str, new: str, step: tuple[str, ...]) -> None:
    if "account" in step:  # the list of accounts is not the last part of the file
        old, new = "[options.log]", f"{new}[options.log]"
    elif not old:
        old, new = "[[account]]", f"{new}[[account]]"
    found = difference(old, new)
    assert told(found) == [step]
    assert found.needs_consent == (step[0] != "add")
    assert not found.drift
    assert not impossible(BEFORE, found)


def test_keys_of_every_server_are_added_and_taken_out_after_a_question(tmp_path: Path) -> None:
    more = 'level = "info"\n[options.security]\nanonymous = false'
    found = difference('level = "info"', more)
    assert told(found) == [("add", "options", "security.anonymous", "value False")]
    assert found.needs_consent
    larger = plan_of(FILE.replace('level = "info"', more))
    less = compare(BEFORE, larger, present_of(larger))
    assert [(s.kind.value, s.name) for s in less.left] == [("options", "security.anonymous")]
    gone = compare(BEFORE, larger, present_of(larger), remove=True)
    assert told(gone) == [("remove", "options", "security.anonymous", "")]
    # What was left is remembered, and removed for good.
    keep(tmp_path, FILE, BEFORE, larger, ())
    assert carried_out(tmp_path) == larger
    keep(tmp_path, FILE, BEFORE, larger, gone.steps)
    assert carried_out(tmp_path) == BEFORE


def test_names_are_the_same_in_any_case_and_sites_in_any_order() -> None:
    assert not difference('["Delft", "Leiden"]', '["LEIDEN", "delft"]').steps
    assert not difference("app1\\orders", "APP1\\Orders").steps


def test_a_port_that_the_file_sets_is_compared_and_one_that_it_does_not_set_is_not() -> None:
    present = present_of(BEFORE)
    key = "lei-dir2"
    there = present[EntryKind.SERVER][key]
    present[EntryKind.SERVER][key] = PresentEntry(
        there.name, {**there.attributes, "rpc_port": 2879, "queue_port": 1801}
    )
    text = 'name = "lei-dir2"\n'
    found = difference(text, f"{text}rpc_port = 2990\n", present)
    assert told(found) == [("change", "server", "lei-dir2", "rpc_port 2879 -> 2990")]
    assert not difference(text, f"{text}rpc_port = 2879\n", present).steps


def test_what_commands_have_changed_is_drift_and_stays() -> None:
    present = present_of(BEFORE)
    present[EntryKind.LINK]["delft - leiden"] = PresentEntry(
        "Delft - Leiden", {"cost": 50, "description": ""}
    )
    present[EntryKind.SERVER]["lei-dir1"] = PresentEntry("lei-dir1", {"role": "bsc"})
    present[EntryKind.SITE]["utrecht"] = PresentEntry("Utrecht", {})
    found = difference("", "", present)
    assert not found.steps
    assert [(d.kind.value, d.name, d.detail) for d in found.drift] == [
        ("site", "Utrecht", "not in the file"),
        ("server", "lei-dir1", "role is bsc, in the file psc"),
        ("link", "Delft - Leiden", "cost is 50, in the file 7"),
    ]
    # A file that changes the same key has decided.
    assert told(difference("cost = 7", "cost = 8", present)) == [
        ("change", "link", "Delft - Leiden", "cost 50 -> 8")
    ]
    assert not [d for d in difference("cost = 7", "cost = 8", present).drift if d.kind == "link"]


def test_what_a_command_has_deleted_is_made_again_after_a_question() -> None:
    present = present_of(BEFORE)
    del present[EntryKind.QUEUE]["app1\\orders"]
    found = difference("", "", present)
    assert told(found) == [
        ("add", "queue", "app1\\orders", "deleted since by a command; it is made again")
    ]
    assert found.needs_consent


WITHOUT = "[[queue]]\npath = 'app1\\orders'\nlabel = \"Orders\"\n"


def test_what_the_file_has_no_more_stays_unless_it_shall_go() -> None:
    found = difference(WITHOUT, "")
    assert not found.steps
    assert [(s.kind.value, s.name) for s in found.left] == [("queue", "app1\\orders")]
    gone = difference(WITHOUT, "", remove=True)
    assert told(gone) == [("remove", "queue", "app1\\orders", "")]
    assert gone.needs_consent
    assert not gone.left


def test_removals_come_last_and_what_depends_on_others_first() -> None:
    text = FILE.replace(WITHOUT, "").replace('[[machine]]\nname = "app1"\nsite = "Delft"\n', "")
    text = text.replace("cost = 7", "cost = 8")
    found = compare(plan_of(text), BEFORE, present_of(BEFORE), remove=True)
    assert [(s.action.value, s.kind.value) for s in found.steps] == [
        ("change", "link"),
        ("remove", "queue"),
        ("remove", "machine"),
    ]


SERVER2 = '[[server]]\nname = "lei-dir2"\nsite = "Leiden"\nrole = "bsc"\n'


@pytest.mark.parametrize(
    ("changes", "remove", "reason"),
    [
        ([('name = "app1"\nsite = "Delft"', 'name = "app1"\nsite = "Leiden"')], False, "stays in"),
        (
            [('label = "Orders"', 'label = "Orders"\ntransactional = true')],
            False,
            "a queue stays as it was made",
        ),
        (
            [
                (
                    'name = "lei-dir1"\nsite = "Leiden"\nrole = "psc"',
                    SERVER2.split("\n", 1)[1][:-1],
                ),
                (SERVER2, ""),
            ],
            True,
            "",
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(
    changes: list[tuple[str, str]], remove: bool, reason: str
) -> None:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    if not reason:  # a site without an authority is no plan at all
        with pytest.raises(Exception, match="exactly one server"):
            plan_of(text)
        return
    found = compare(plan_of(text), BEFORE, present_of(BEFORE), remove=remove)
    (said,) = impossible(BEFORE, found)
    assert reason in said


def test_two_servers_of_a_site_exchange_their_roles_and_others_do_not() -> None:
    both = FILE.replace('role = "psc"', 'role = "x"').replace('role = "bsc"', 'role = "psc"')
    found = compare(plan_of(both.replace('role = "x"', 'role = "bsc"')), BEFORE, present_of(BEFORE))
    assert [s.detail for s in found.steps] == ["role psc -> bsc", "role bsc -> psc"]
    assert not impossible(BEFORE, found)
    pec = FILE.replace('role = "pec"', 'role = "x"').replace('role = "psc"', 'role = "pec"')
    found = compare(plan_of(pec.replace('role = "x"', 'role = "psc"')), BEFORE, present_of(BEFORE))
    assert all("a PEC cannot" in text for text in impossible(BEFORE, found))
    assert len(impossible(BEFORE, found)) == 2


def test_only_a_backup_can_be_removed_whatever_its_role_was_in_the_file() -> None:
    present = present_of(BEFORE)
    text = FILE.replace(SERVER2, "")
    found = compare(plan_of(text), BEFORE, present, remove=True)
    assert told(found) == [("remove", "server", "lei-dir2", "")]
    assert not impossible(BEFORE, found)
    there = present[EntryKind.SERVER]["lei-dir2"]
    promoted = PresentEntry("lei-dir2", {**there.attributes, "role": "psc"})
    present[EntryKind.SERVER]["lei-dir2"] = promoted
    plan = plan_of(text)
    (said,) = impossible(plan, compare(plan, BEFORE, present, remove=True))
    assert said.startswith("server lei-dir2: only a backup can be removed")


def without_leiden() -> str:
    """The file without a site and all that is in it."""
    text = FILE
    for part in (
        '[[site]]\nname = "Leiden"\n',
        '# two offices\n[[link]]\nsites = ["Delft", "Leiden"]\n',
        "cost = 7                        # leased\n",
        '[[server]]\nname = "lei-dir1"\nsite = "Leiden"\nrole = "psc"\n',
        SERVER2,
    ):
        assert part in text
        text = text.replace(part, "")
    return text


def test_a_site_goes_with_all_its_servers_and_links() -> None:
    """A site whose only server was its PSC could not be taken out at all."""
    present = present_of(BEFORE)
    present[EntryKind.SITE]["utrecht"] = PresentEntry("Utrecht", {})  # made by a command
    made = PresentEntry("Leiden - Utrecht", {"cost": 1, "description": ""})
    present[EntryKind.LINK]["leiden - utrecht"] = made
    plan = plan_of(without_leiden())
    found = compare(plan, BEFORE, present, remove=True)
    assert {(a, kind, name) for a, kind, name, _ in told(found)} == {
        ("remove", "link", "Delft - Leiden"),
        ("remove", "link", "Leiden - Utrecht"),
        ("remove", "server", "lei-dir1"),
        ("remove", "server", "lei-dir2"),
        ("remove", "site", "Leiden"),
    }
    assert told(found)[-1][1:3] == ("site", "Leiden")
    assert [drift.name for drift in found.drift] == ["Utrecht"]
    assert impossible(plan, found) == []
    assert without_gates(plan, found.steps) == []
    assert found.needs_consent
    del present[EntryKind.SITE]["leiden"]  # 'mqis delete site' has been there
    assert impossible(plan, compare(plan, BEFORE, present, remove=True)) == []


def test_a_site_that_a_command_has_deleted_is_not_made_again_over_its_servers() -> None:
    present = present_of(BEFORE)
    del present[EntryKind.SITE]["leiden"]
    (said,) = impossible(BEFORE, compare(BEFORE, BEFORE, present))
    assert said.startswith("site Leiden: a command has deleted it, and its servers (lei-dir1, lei")
    for server in ("lei-dir1", "lei-dir2"):
        del present[EntryKind.SERVER][server]
    assert impossible(BEFORE, compare(BEFORE, BEFORE, present)) == []


def test_a_site_that_loses_its_last_gate_is_told() -> None:
    routing = FILE.replace('role = "bsc"', 'role = "bsc"\nrouting = true')
    before = plan_of(routing)
    warning = "Leiden has no gate any more: give another server routing = true"

    def warnings(text: str, *, remove: bool) -> list[str]:
        plan = plan_of(text)
        return without_gates(plan, compare(plan, before, present_of(before), remove=remove).steps)

    assert warnings(FILE.replace(SERVER2, ""), remove=True) == [warning]
    assert warnings(FILE.replace(SERVER2, ""), remove=False) == []  # it is left alone
    assert warnings(FILE, remove=False) == [warning]
    assert warnings(routing, remove=True) == []
    other = FILE.replace('role = "psc"', 'role = "psc"\nrouting = true')
    assert warnings(other.replace(SERVER2, ""), remove=True) == []


# --- the file, and what a run directory keeps of it ----------------------------------------------


def test_drift_is_written_into_the_file_and_the_rest_of_it_stays(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(FILE, "utf-8")
    path.chmod(0o640)
    present = present_of(BEFORE)
    link = {"cost": 50, "description": ""}
    present[EntryKind.LINK]["delft - leiden"] = PresentEntry("Delft - Leiden", link)
    present[EntryKind.SERVER]["lei-dir1"] = PresentEntry("lei-dir1", {"role": "bsc"})
    present[EntryKind.SERVER]["lei-dir2"] = PresentEntry("lei-dir2", {"role": "psc"})
    present[EntryKind.SITE]["utrecht"] = PresentEntry("Utrecht", {})
    del present[EntryKind.QUEUE]["app1\\orders"]
    written = adopt(path, compare(BEFORE, BEFORE, present))
    assert written == [
        "server lei-dir1: role = bsc",
        "server lei-dir2: role = psc",
        "link Delft - Leiden: cost = 50",
        "queue app1\\orders: taken out",
    ]
    text = path.read_text("utf-8")
    assert "# two offices\n" in text
    assert "cost = 50                        # leased\n" in text
    now = plan_of(text)
    assert not now.queues
    assert [(s.name, s.role.value) for s in now.servers[1:]] == [
        ("lei-dir1", "bsc"),
        ("lei-dir2", "psc"),
    ]
    assert path.stat().st_mode & 0o777 == 0o640
    after = compare(now, BEFORE, present)
    assert [d.kind for d in after.drift] == [EntryKind.SITE]
    assert not after.steps
    assert adopt(path, after) == []
    assert path.read_text("utf-8") == text


def test_drift_that_makes_no_plan_is_not_written(tmp_path: Path) -> None:
    """Two PSCs of a site were written, and no 'mqis up' would read the file."""
    path = tmp_path / "enterprise.toml"
    path.write_text(FILE, "utf-8")
    present = present_of(BEFORE)
    present[EntryKind.SERVER]["lei-dir2"] = PresentEntry("lei-dir2", {"role": "psc"})
    with pytest.raises(ConfigError, match=r"lei-dir1, lei-dir2; .*nothing was written: server"):
        adopt(path, compare(BEFORE, BEFORE, present))
    assert path.read_text("utf-8") == FILE


def test_a_link_that_a_command_has_made_is_written_too(tmp_path: Path) -> None:
    text = FILE.replace("# two offices\n[[link]]\n", "[[x]]\n").replace("[[x]]", "[[link]]")
    start, end = text.index("[[link]]"), text.index("[[server]]")
    text = text[:start] + text[end:]
    path = tmp_path / "enterprise.toml"
    path.write_text(text, "utf-8")
    present = present_of(BEFORE)
    plan = plan_of(text)
    assert adopt(path, compare(plan, plan, present)) == ["link Delft - Leiden: added"]
    (link,) = plan_of(path.read_text("utf-8")).links
    assert (link.sites, link.cost, link.description) == (("Delft", "Leiden"), 7, "")


def test_nothing_moves_where_lists_alternate(tmp_path: Path) -> None:
    """Comments of a machine and of its queue were moved, because the lists alternate."""
    more = """# desk
[[machine]]
name = "desk1"
site = "Leiden"
# its inbox
[[queue]]
path = 'desk1\\in'
# the end of desk
"""
    text = FILE.replace("[[account]]", f"{more}[[account]]").replace("\n", "\r\n")
    path = tmp_path / "enterprise.toml"
    path.write_bytes(text.encode())
    present = present_of(plan_of(text))
    present[EntryKind.MACHINE]["desk1"] = PresentEntry("desk1", {"address": "10.0.0.7"})
    plan = plan_of(text.replace('name = "desk1"', 'name = "desk1"\r\naddress = "10.0.0.6"'))
    path.write_bytes(text.replace('"desk1"', '"desk1"\r\naddress = "10.0.0.6"  # cable').encode())
    assert adopt(path, compare(plan, plan, present)) == ["machine desk1: address = 10.0.0.7"]
    expected = text.replace('"desk1"', '"desk1"\r\naddress = "10.0.0.7"  # cable')
    assert path.read_bytes() == expected.encode()


def test_a_deleted_site_is_taken_out_with_its_servers(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(FILE, "utf-8")
    present = present_of(BEFORE)
    del present[EntryKind.SITE]["leiden"]
    del present[EntryKind.LINK]["delft - leiden"]
    found = compare(BEFORE, BEFORE, present)
    assert [server.name for server in expelled_servers(BEFORE, found)] == ["lei-dir1", "lei-dir2"]
    assert adopt(path, found) == [
        "site Leiden: taken out",
        "link Delft - Leiden: taken out",
        "server lei-dir1: taken out",
        "server lei-dir2: taken out",
    ]
    now = plan_of(path.read_text("utf-8"))
    assert [s.name for s in now.servers] == ["del-dir1"]
    # The servers are remembered until somebody removes them.
    keep(tmp_path, path.read_text("utf-8"), now, None, ())
    leave(tmp_path, BEFORE.servers[1:])
    known = carried_out(tmp_path)
    assert known is not None
    del present[EntryKind.SERVER]["lei-dir2"]
    gone = compare(now, known, present, remove=True)
    assert told(gone) == [("remove", "server", "lei-dir1", "")]
    assert impossible(now, gone) == []
    forget(tmp_path, "LEI-DIR1")
    known = carried_out(tmp_path)
    assert known is not None
    assert [s.name for s in known.servers] == ["del-dir1", "lei-dir2"]


def test_a_deleted_account_is_taken_out(tmp_path: Path) -> None:
    """It was told, and not done."""
    path = tmp_path / "enterprise.toml"
    text = FILE.replace("[options.log]", "[[account]]\nname = 'clerk'\n[options.log]")
    path.write_text(text, "utf-8")
    plan = plan_of(text)
    present = present_of(plan)
    del present[EntryKind.ACCOUNT]["acme\\clerk"]
    assert adopt(path, compare(plan, plan, present)) == ["account clerk: taken out"]
    assert path.read_text("utf-8") == FILE


def test_what_was_left_alone_is_remembered_until_it_is_removed(tmp_path: Path) -> None:
    assert carried_out(tmp_path) is None
    keep(tmp_path, FILE, BEFORE, None, ())
    assert carried_out(tmp_path) == BEFORE
    shorter = FILE.replace(WITHOUT, "").replace(SERVER2, "")
    keep(tmp_path, shorter, plan_of(shorter), BEFORE, ())
    assert (tmp_path / PLAN).read_text("utf-8") == shorter
    known = carried_out(tmp_path)
    assert known is not None
    assert [s.name for s in known.servers] == ["del-dir1", "lei-dir1", "lei-dir2"]
    assert known.queues == BEFORE.queues
    found = compare(plan_of(shorter), known, present_of(BEFORE), remove=True)
    queue = [step for step in found.steps if step.kind is EntryKind.QUEUE]
    assert [step.action for step in queue] == [Action.REMOVE]
    keep(tmp_path, shorter, plan_of(shorter), known, queue)
    known = carried_out(tmp_path)
    assert known is not None
    assert [s.name for s in known.servers] == ["del-dir1", "lei-dir1", "lei-dir2"]
    assert not known.queues
    # It is in the file again, so it is left no more.
    keep(tmp_path, FILE, BEFORE, known, ())
    assert tomllib.loads((tmp_path / LEFT).read_text("utf-8")) == {}
