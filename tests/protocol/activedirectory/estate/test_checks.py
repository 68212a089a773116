"""Each check of an estate finds its planted fault, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from mqis.admin.activedirectory.estate.sources import expiry_of
from mqis.findings import CheckReport
from mqis.protocol.activedirectory.estate.examining import examine_estate
from mqis.protocol.activedirectory.estate.findings import EstateCheck, ldif_of
from mqis.protocol.activedirectory.estate.gathering import EstateGathering
from mqis.protocol.ldap.entry import LdapEntry
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, EntryChange, ModifyEntry, ModifyKind
from mqis.wire.ldap.ldif import read_ldif
from tests.estate.planted import faults, sound, standing

#: Faults that take a person, or work at the computer itself.
BY_HAND = {
    "alias_to_nowhere",
    "computer_name_doubled",
    "conflicting_entry",
    "disabled_computer",
    "machine_without_site",
    "site_without_router",
}


def examined(entries: Iterable[AddEntry], around: Iterable[AddEntry] | None = None) -> CheckReport:
    gathering = EstateGathering(int(time.time()), expiry_of)
    for entry in (*(standing() if around is None else around), *entries):
        gathering.add(LdapEntry(entry.name, entry.attributes))
    return examine_estate(gathering.finish())


def applied(entries: Iterable[AddEntry], changes: Iterable[EntryChange]) -> list[AddEntry]:
    """The entries after changes, as a directory would make them."""
    held = {entry.name: entry for entry in entries}
    for change in changes:
        match change:
            case DeleteEntry(name):
                del held[name]
            case ModifyEntry(name):
                rows = dict(held[name].attributes)
                for one in change.changes:
                    old = rows.pop(one.attribute, ())
                    new = {
                        ModifyKind.REPLACE: one.values,
                        ModifyKind.ADD: old + one.values,
                        ModifyKind.DELETE: tuple(v for v in old if v not in one.values),
                    }[one.kind]
                    if new:
                        rows[one.attribute] = new
                held[name] = AddEntry(name, tuple(rows.items()))
            case AddEntry():
                held[change.name] = change
    return list(held.values())


def test_a_sound_estate_has_no_findings() -> None:
    report = examined(sound())
    assert report.findings == ()
    assert report.limits == ()
    assert report.unreadable == ()
    assert report.counts == {
        "computer": 4, "machine": 4, "queue": 1, "site": 3, "link": 2, "settings": 3
    }  # fmt: skip


@pytest.mark.parametrize("check", [check.label for check in EstateCheck])
def test_one_planted_fault_is_found_and_no_other(check: str) -> None:
    planted = faults()[check]
    (finding,) = examined([*sound(), *planted]).findings
    assert finding.check == check
    assert finding.where in {entry.name for entry in planted}
    assert finding.todo
    assert finding.what
    assert finding.why


@pytest.mark.parametrize("check", [check.label for check in EstateCheck])
def test_the_repair_mends_the_fault_and_makes_no_other(check: str) -> None:
    estate = [*sound(), *faults()[check]]
    (finding,) = examined(estate).findings
    if not finding.repair:
        assert check in BY_HAND
        return
    records = list(read_ldif(ldif_of(finding).encode().splitlines(keepends=True), "repair"))
    assert [record.name for record in records] == [change.name for change in finding.repair]
    assert examined(applied(estate, records)).findings == ()


def test_all_faults_together() -> None:
    planted = faults()
    found = examined([*sound(), *(entry for entries in planted.values() for entry in entries)])
    assert sorted(finding.check for finding in found.findings) == sorted(planted)
