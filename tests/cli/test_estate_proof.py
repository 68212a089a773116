"""``mqis estate check`` calls nothing gone that it did not look for where it would be.

Forests of two domains, with and without a global catalogue, renamed servers, entries and attributes
that the account may not see: by the command, at scripted domain controllers and on dumps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from mqis.admin.activedirectory.estate.asking import catalogue_of
from mqis.testing.ldap import ScriptedDirectory
from mqis.wire.ldap.changes import AddEntry, DeleteEntry, EntryChange, ModifyEntry, ModifyKind
from mqis.wire.ldap.ldif import read_ldif, write_ldif
from mqis.wire.ldap.responses import SearchEntry
from mqis.wire.security.sid import EVERYONE, Sid
from tests.cli.commands import run
from tests.estate.forest import (
    CHILD,
    child,
    configuration,
    faults_of_two_domains,
    migrated,
    parent,
)
from tests.estate.planted import (
    BERLIN,
    CONFIGURATION,
    LOST,
    OSLO,
    OU,
    PARIS,
    ROM,
    ROOT,
    SITES,
    computer,
    faults,
    guid,
    link,
    machine,
    made,
    queue,
    queue_at,
    settings,
    sound,
    standing,
)
from tests.protocol.activedirectory.estate.test_checks import applied

#: A port that nobody listens on.
NOBODY_THERE = "ldap://127.0.0.1:1"


class Checked:
    """The result of the command, and the two files that it wrote."""

    def __init__(self, done: Any, repairs: Path) -> None:
        assert done.exit_code in (0, 1), done.output
        self.told: dict[str, Any] = json.loads(done.stdout)
        self.repairs = records(repairs)
        self.undo = records(repairs.with_name("repairs.undo.ldif"))

    @property
    def found(self) -> list[str]:
        return sorted(finding["check"] for finding in self.told["findings"])

    @property
    def unknown(self) -> dict[str, int]:
        return {limit["check"]: limit["left_out"] for limit in self.told["unknown"]}

    @property
    def reasons(self) -> str:
        return "\n".join(f"{limit['reason']}; {limit['advice']}" for limit in self.told["unknown"])


def fresh(tmp_path: Path) -> Path:
    """The name for repairs; those of an earlier check are removed."""
    for name in ("repairs.ldif", "repairs.undo.ldif"):
        (tmp_path / name).unlink(missing_ok=True)
    return tmp_path / "repairs.ldif"


def records(path: Path) -> list[EntryChange]:
    with path.open("rb") as file:
        return list(read_ldif(file, str(path)))


def served(entries: Iterable[AddEntry], domain: str = ROOT) -> ScriptedDirectory:
    root = (
        ("defaultNamingContext", (domain.encode(),)),
        ("rootDomainNamingContext", (ROOT.encode(),)),
        ("configurationNamingContext", (CONFIGURATION.encode(),)),
    )
    shown = [SearchEntry(entry.name, entry.attributes) for entry in entries]
    container = ("objectClass", (b"configuration",))
    return ScriptedDirectory(
        [SearchEntry("", root), SearchEntry(CONFIGURATION, (container,)), *shown], page_limit=7
    )


def online(
    tmp_path: Path,
    entries: Iterable[AddEntry],
    everywhere: Iterable[AddEntry] | None = None,
    *arguments: str,
) -> Checked:
    """Checks a domain controller with these entries; ``everywhere`` is in a global catalogue."""
    repairs = fresh(tmp_path)

    async def checked() -> Any:
        async with served(entries) as server, served(everywhere or ()) as catalogue:
            url = NOBODY_THERE if everywhere is None else catalogue.url
            given = ["--method", "anonymous", "--json", "--ldif", str(repairs), *arguments]
            check = ["estate", "check", server.url, "--catalogue", url, *given]
            return await asyncio.to_thread(run, *check)

    return Checked(asyncio.run(checked()), repairs)


def in_both_domains(tmp_path: Path, entries: Iterable[AddEntry]) -> Checked:
    """Checks a controller of each domain; no global catalogue answers, because nobody needs one."""
    repairs = fresh(tmp_path)
    below = [entry for entry in entries if entry.name.endswith(CHILD)]
    others = [entry for entry in entries if not entry.name.endswith(CHILD)]
    shared = [entry for entry in others if entry.name.endswith(CONFIGURATION)]

    async def checked() -> Any:
        async with served(others) as first, served([*below, *shared], CHILD) as second:
            given = ["--method", "anonymous", "--json", "--ldif", str(repairs)]
            check = ["estate", "check", first.url, second.url, "--catalogue", NOBODY_THERE]
            return await asyncio.to_thread(run, *check, *given)

    return Checked(asyncio.run(checked()), repairs)


def dumped(tmp_path: Path, entries: Iterable[AddEntry]) -> Checked:
    """Checks a dump with these entries."""
    file, repairs = tmp_path / "estate.ldif", fresh(tmp_path)
    file.write_text("".join(write_ldif(entries)), "utf-8")
    return Checked(run("estate", "check", file, "--json", "--ldif", repairs), repairs)


Check = Callable[[Path, Iterable[AddEntry]], Checked]
either = pytest.mark.parametrize("check", [online, dumped])


def without(entries: Iterable[AddEntry], *attributes: str) -> list[AddEntry]:
    """The entries as somebody sees them who may not read these attributes."""
    return [
        AddEntry(entry.name, tuple(row for row in entry.attributes if row[0] not in attributes))
        for entry in entries
    ]


def hidden(entries: Iterable[AddEntry], *names: str) -> list[AddEntry]:
    """The entries as somebody sees them who may not see some."""
    assert {entry.name for entry in entries} >= set(names)
    return [entry for entry in entries if entry.name not in names]


# --- two domains ----------------------------------------------------------------------------------


def test_a_sound_forest_with_a_global_catalogue_is_clean(tmp_path: Path) -> None:
    here = [*parent(), *configuration()]
    checked = online(tmp_path, here, [*here, *child()])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"": 1}
    assert f"of the forest, {CHILD.lower()} was not read" in checked.reasons


def test_without_a_global_catalogue_other_domains_are_unknown(tmp_path: Path) -> None:
    checked = online(tmp_path, [*parent(), *configuration()])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"": 1, "bad_gate": 1, "left_settings": 1, "unknown_user": 1}
    assert "no global catalogue answered" in checked.reasons


def test_a_dump_of_one_domain_of_two_proposes_nothing(tmp_path: Path) -> None:
    planted = [entry for each in faults_of_two_domains().values() for entry in each]
    checked = dumped(tmp_path, [*parent(), *configuration(), *planted])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"": 1, "bad_gate": 2, "left_settings": 2, "unknown_user": 2}


def test_what_the_global_catalogue_does_not_have_is_gone(tmp_path: Path) -> None:
    planted = faults_of_two_domains()
    here = [*parent(), *configuration(), *(entry for each in planted.values() for entry in each)]
    checked = online(tmp_path, here, [*here, *child()])
    assert checked.found == sorted(planted)
    assert checked.unknown == {"": 1}
    assert {change.name for change in checked.repairs} == {
        entry.name
        for each in planted.values()
        for entry in each
        if entry.name in {finding["where"] for finding in checked.told["findings"]}
    }
    assert len(checked.repairs) == 3


def test_a_dump_of_both_domains_shows_the_same(tmp_path: Path) -> None:
    planted = faults_of_two_domains()
    both = [*parent(), *configuration(), *child()]
    assert dumped(tmp_path, both).found == []
    checked = dumped(tmp_path, [*both, *(entry for each in planted.values() for entry in each)])
    assert checked.found == sorted(planted)
    assert checked.unknown == {}


def test_the_controllers_of_both_domains_show_the_same(tmp_path: Path) -> None:
    planted = faults_of_two_domains()
    both = [*parent(), *configuration(), *child()]
    sound_forest = in_both_domains(tmp_path, both)
    assert (sound_forest.found, sound_forest.repairs) == ([], [])
    assert sound_forest.unknown == {}
    faulty = [*both, *(entry for each in planted.values() for entry in each)]
    checked = in_both_domains(tmp_path, faulty)
    assert checked.found == sorted(planted)
    assert checked.unknown == {}
    # What each repair takes away was read from the domain that has it.
    deleted = {change.name for change in checked.repairs if isinstance(change, DeleteEntry)}
    assert deleted == {change.name for change in checked.undo if isinstance(change, AddEntry)}


def test_two_controllers_of_one_domain_are_refused() -> None:
    async def checked() -> Any:
        async with served([*parent()]) as first, served([*parent()]) as second:
            check = ["estate", "check", first.url, second.url, "--method", "anonymous"]
            return await asyncio.to_thread(run, *check)

    done = asyncio.run(checked())
    assert done.exit_code == 2
    assert "two of these are controllers of" in done.stderr


def test_files_and_controllers_are_not_checked_together(tmp_path: Path) -> None:
    done = run("estate", "check", tmp_path / "estate.ldif", "ldaps://dc1.corp.example")
    assert done.exit_code == 2
    assert "not both together" in done.stderr


def test_a_catalogue_that_lacks_a_domain_proves_nothing(tmp_path: Path) -> None:
    planted = [entry for each in faults_of_two_domains().values() for entry in each]
    here = [*parent(), *configuration(), *planted]
    checked = online(tmp_path, here, here)
    assert (checked.found, checked.repairs) == ([], [])
    assert f"it does not have {CHILD.lower()}: no global catalogue" in checked.reasons


@either
def test_an_unknown_forest_may_have_other_domains(check: Check, tmp_path: Path) -> None:
    seen = [entry for entry in standing() if b"crossRef" not in entry.values("objectClass")]
    checked = check(tmp_path, [*seen, *sound(), *faults()["left_settings"]])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"": 0, "left_settings": 1}
    assert "does not tell which domains the forest has" in checked.reasons


def test_the_name_of_a_child_domain_ends_like_that_of_its_parent(tmp_path: Path) -> None:
    """A gate there does not exist only if somebody looked there."""
    gate = ("mSMQSiteGates", (f"CN=msmq,CN=X,OU=Messaging,DC=x{ROOT[3:]}".encode(),))
    link = next(entry for entry in sound() if b"mSMQSiteLink" in entry.values("objectClass"))
    rows = tuple(row for row in link.attributes if row[0] != gate[0])
    entries = [*hidden([*standing(), *sound()], link.name), AddEntry(link.name, (*rows, gate))]
    checked = dumped(tmp_path, entries)
    assert (checked.found, checked.unknown) == ([], {"bad_gate": 1})


def test_a_user_with_a_former_sid_is_a_user(tmp_path: Path) -> None:
    old = migrated("erik", Sid.parse("S-1-5-21-1-2-3-4711"))
    history = ("sIDHistory", old.values("mSMQUserSid"))
    person = made(f"CN=erik2,{OU}", "top", "person", "user", sAMAccountName="erik")
    moved = AddEntry(person.name, (*person.attributes, history))
    assert online(tmp_path, [*standing(), *sound(), old, moved]).found == []
    assert online(tmp_path, [*standing(), *sound(), old]).found == ["unknown_user"]


def test_a_user_of_another_forest_is_unknown(tmp_path: Path) -> None:
    other = migrated("fritz", Sid.parse("S-1-5-21-9-9-9-1001"))
    checked = online(tmp_path, [*standing(), *sound(), other])
    assert (checked.found, checked.unknown) == ([], {"unknown_user": 1})


@pytest.mark.parametrize(
    ("url", "catalogue"),
    [
        ("ldaps://dc1.corp.example", "ldaps://dc1.corp.example:3269"),
        ("ldap://dc1.corp.example:389", "ldap://dc1.corp.example:3268"),
        ("ldaps:///DC=berlin,DC=corp,DC=example", "ldaps://:3269/DC=corp,DC=example"),
    ],
)
def test_the_global_catalogue_of_the_same_server(url: str, catalogue: str) -> None:
    assert catalogue_of(url, CONFIGURATION) == catalogue


# --- renamed servers ------------------------------------------------------------------------------


def renamed(number: int, *, refers: bool) -> list[AddEntry]:
    """The sound estate after SRVn was renamed; its server entries keep the old name."""
    old, new = f"SRV{number}", f"NEW{number}"
    gone = {entry.name for entry in settings(old, guid(number), guid(16 + number))}
    gone |= {f"CN={old},{OU}", f"CN=msmq,CN={old},{OU}"}
    kept = [
        AddEntry(
            entry.name,
            tuple(
                (
                    name,
                    tuple(
                        value.replace(f"={old},".encode(), f"={new},".encode()) for value in values
                    ),
                )
                for name, values in entry.attributes
            ),
        )
        for entry in [*standing(), *sound()]
        if entry.name not in gone
    ]
    return [
        *kept,
        computer(new, f"10.{number}.0.1"),
        machine(new, 16 + number, guid(number), routing=True),
        *settings(old, guid(number), guid(16 + number), refers=new if refers else ""),
    ]


@either
@pytest.mark.parametrize("refers", [True, False])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_renamed_server_is_no_clone(
    check: Check, number: int, refers: bool, tmp_path: Path
) -> None:
    checked = check(tmp_path, renamed(number, refers=refers))
    assert (checked.found, checked.repairs, checked.unknown) == ([], [], {})


@either
def test_a_new_computer_with_the_old_name_proves_no_clone(check: Check, tmp_path: Path) -> None:
    """The settings may be those of the renamed server: they stay."""
    follower = computer("SRV1", "10.1.0.4")
    checked = check(tmp_path, [*renamed(1, refers=False), follower])
    assert (checked.found, checked.repairs) == (["cloned_queue_manager"], [])
    assert "they are its own" in checked.told["findings"][0]["advice"]
    checked = check(tmp_path, [*renamed(1, refers=True), follower])
    assert checked.found == []


@either
def test_a_clone_is_told_only_if_its_computer_is_seen(check: Check, tmp_path: Path) -> None:
    entries = [*standing(), *sound(), *faults()["cloned_queue_manager"]]
    assert check(tmp_path, entries).found == ["cloned_queue_manager"]
    checked = check(tmp_path, hidden(entries, f"CN=SRV9,{OU}"))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"cloned_queue_manager": 1}
    server = faults()["cloned_queue_manager"][1].name
    checked = check(tmp_path, hidden(entries, server))
    assert (checked.found, checked.unknown) == ([], {"cloned_queue_manager": 1})


# --- what the account does not see ----------------------------------------------------------------


@either
def test_settings_of_a_hidden_computer_stay(check: Check, tmp_path: Path) -> None:
    """The server refers to a computer, so there is one: the account does not see it."""
    left = settings("AWAY", BERLIN, guid(99), refers="AWAY")
    checked = check(tmp_path, [*standing(), *sound(), *left])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"left_settings": 1}
    assert "List contents" in checked.reasons


@either
def test_a_hidden_computer_does_not_make_its_queue_manager_an_orphan(
    check: Check, tmp_path: Path
) -> None:
    checked = check(tmp_path, hidden([*standing(), *sound()], f"CN=WS1,{OU}"))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"no_computer": 1}


@either
def test_a_hidden_queue_manager_does_not_make_its_queues_orphans(
    check: Check, tmp_path: Path
) -> None:
    checked = check(tmp_path, hidden([*standing(), *sound()], f"CN=msmq,CN=WS1,{OU}"))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"queue_without_machine": 1}


@either
def test_a_damaged_queue_manager_does_not_make_its_queues_orphans(
    check: Check, tmp_path: Path
) -> None:
    bad = made(f"CN=msmq,CN=WS1,{OU}", "mSMQConfiguration", objectGUID=b"short")
    entries = [*hidden([*standing(), *sound()], bad.name), bad]
    checked = check(tmp_path, entries)
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"queue_without_machine": 1}


@either
def test_settings_may_be_those_of_a_damaged_queue_manager(check: Check, tmp_path: Path) -> None:
    bad = made(f"CN=msmq,CN=X,{OU}", "mSMQConfiguration", objectGUID=b"short")
    checked = check(tmp_path, [*standing(), *sound(), bad, *faults()["left_settings"]])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"left_settings": 1}


@either
def test_a_gate_below_a_hidden_container_is_unknown(check: Check, tmp_path: Path) -> None:
    """Somebody who sees nothing in the organizational unit sees no gates in it."""
    entries = [*standing(), *sound()]
    shown = [entry for entry in entries if not entry.name.endswith(f",{OU}")]
    for seen in (shown, without(shown, "serverReference")):
        checked = check(tmp_path, seen)
        assert (checked.found, checked.repairs) == ([], [])
        assert checked.unknown["bad_gate"] == checked.unknown["left_settings"] == 3


# --- links to deleted sites -----------------------------------------------------------------------


def without_rom(*ends: str) -> list[AddEntry]:
    """The estate after the site Rom was deleted with all below it; ``ends``: links name it so.

    The links are Berlin-Rom and Paris-Rom; SRV3 moved to Berlin. Active Directory follows with the
    name of a link's site, as far as it knows the deleted entry.
    """
    rom = f"CN=Rom,{SITES}"
    kept = [entry for entry in [*standing(), *sound()] if not entry.name.endswith(rom)]
    moved = f"CN=msmq,CN=SRV3,{OU}"
    kept = [
        e
        for e in kept
        if e.name != moved and rom.encode() not in (*e.values("siteObject"), *e.values("mSMQSite2"))
    ]
    links = [link(BERLIN, ROM, "SRV1", "SRV3"), link(PARIS, ROM)]
    dead = [
        AddEntry(each.name, tuple((k, (end.encode(),) if k == "mSMQSite2" else v) for k, v in rows))
        for end in ends
        for each in links
        for rows in [each.attributes]
    ]
    return [*kept, machine("SRV3", 19, BERLIN, routing=True), *dead]


@either
@pytest.mark.parametrize(
    ("end", "fault"),
    [
        (f"CN=Rom,{SITES}", "does not exist"),
        (f"CN=Rom\\0ADEL:{guid(3)},CN=Deleted Objects,{CONFIGURATION}", "is deleted"),
    ],
)
def test_a_link_to_a_deleted_site_is_deleted_and_not_repaired(
    check: Check, end: str, fault: str, tmp_path: Path
) -> None:
    estate = without_rom(end)
    checked = check(tmp_path, estate)
    assert (checked.found, checked.unknown) == (["link_to_nowhere"] * 2, {})
    for finding in checked.told["findings"]:
        assert finding["detail"] == f"{end.lower()} {fault}"
    dead = [link(BERLIN, ROM).name, link(PARIS, ROM).name]
    assert sorted(change.name for change in checked.repairs) == sorted(dead)
    assert all(isinstance(change, DeleteEntry) for change in checked.repairs)
    assert sorted(change.name for change in checked.undo) == sorted(dead)
    assert all(isinstance(change, AddEntry) for change in checked.undo)
    assert check(tmp_path, applied(estate, checked.repairs)).found == []


def hidden_rom() -> list[AddEntry]:
    """The site is there, and the account does not see it, nor anything below it."""
    rom = f"CN=Rom,{SITES}"
    return [entry for entry in [*standing(), *sound()] if not entry.name.endswith(rom)]


@either
def test_a_site_that_others_refer_to_is_hidden(check: Check, tmp_path: Path) -> None:
    checked = check(tmp_path, hidden_rom())
    assert "link_to_nowhere" not in checked.found
    assert checked.unknown["link_to_nowhere"] == 1
    assert "a site of a routing link is not seen" in checked.reasons
    named = link(BERLIN, ROM).name
    assert named not in {change.name for change in checked.repairs}, "its gates stay as well"


@either
def test_a_site_with_entries_below_it_is_hidden(check: Check, tmp_path: Path) -> None:
    estate = [*without_rom(f"CN=Rom,{SITES}"), *settings("SRV3", ROM, guid(19), "SRV3")]
    checked = check(tmp_path, estate)
    assert "link_to_nowhere" not in checked.found
    assert checked.unknown["link_to_nowhere"] == 2


@either
@pytest.mark.parametrize("container", ["nothing", "a referrer"])
def test_a_site_is_unknown_if_nothing_is_seen_beside_it_or_entries_are_hidden(
    check: Check, container: str, tmp_path: Path
) -> None:
    estate = without_rom(f"CN=Rom,{SITES}")
    if container == "nothing":
        estate = [e for e in estate if not e.name.endswith(SITES)]
    else:
        estate = hidden(estate, f"CN=msmq,CN=WS1,{OU}")  # its queue is seen
    checked = check(tmp_path, estate)
    assert "link_to_nowhere" not in checked.found
    assert checked.unknown["link_to_nowhere"] >= 2
    assert not {link(BERLIN, ROM).name, link(PARIS, ROM).name} & {c.name for c in checked.repairs}


def test_the_controller_of_a_child_domain_has_the_configuration(tmp_path: Path) -> None:
    """The name of a site ends like that of the root domain, which need not be asked for it."""
    repairs = fresh(tmp_path)
    everything = [*standing(), *sound(), *configuration(), link(BERLIN, OSLO)]
    shared = [entry for entry in everything if entry.name.endswith(CONFIGURATION)]

    async def checked() -> Any:
        async with served([*child(), *shared], CHILD) as server:
            given = ["--method", "anonymous", "--json", "--ldif", str(repairs)]
            check = ["estate", "check", server.url, "--catalogue", NOBODY_THERE]
            return await asyncio.to_thread(run, *check, *given)

    assert "link_to_nowhere" in Checked(asyncio.run(checked()), repairs).found


def test_a_gate_below_a_computer_without_readable_attributes_is_unknown(tmp_path: Path) -> None:
    """The account sees that the computer is there, and neither its class nor what it contains."""
    name = f"CN=SRV2,{OU}"
    entries = hidden([*standing(), *sound()], name, f"CN=msmq,{name}")
    checked = online(tmp_path, [*entries, AddEntry(name, ())])
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"bad_gate": 1, "left_settings": 1}


@either
def test_a_user_may_be_hidden_as_other_entries_are(check: Check, tmp_path: Path) -> None:
    entries = [*standing(), *sound(), *faults()["unknown_user"]]
    assert check(tmp_path, entries).found == ["unknown_user"]
    checked = check(tmp_path, hidden(entries, f"CN=msmq,CN=WS1,{OU}"))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"queue_without_machine": 1, "unknown_user": 1}


@either
def test_hidden_services_make_no_server_a_client(check: Check, tmp_path: Path) -> None:
    services = "mSMQRoutingServices", "mSMQServiceType"
    checked = check(tmp_path, without([*standing(), *sound()], *services))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {"bad_gate": 3, "left_settings": 3, "site_without_router": 3}
    assert "Read all properties" in checked.reasons


@either
def test_hidden_attributes_of_links_and_settings(check: Check, tmp_path: Path) -> None:
    names = "mSMQSite1", "mSMQSite2", "mSMQSiteGates", "mSMQQMID", "mSMQServices"
    checked = check(tmp_path, without([*standing(), *sound()], *names, "mSMQRoutingService"))
    assert (checked.found, checked.repairs) == ([], [])
    assert checked.unknown == {
        "left_settings": 3,
        "link_to_nowhere": 2,
        "link_without_gates": 2,
    }


@either
def test_a_queue_whose_descriptor_is_hidden_counts_as_unknown(check: Check, tmp_path: Path) -> None:
    secret = without([queue("secret", "WS1", 61)], "nTSecurityDescriptor")
    checked = check(tmp_path, [*standing(), *sound(), *secret, *faults()["open_queue"]])
    assert checked.found == ["open_queue"]
    assert checked.unknown == {"open_queue": 1}
    assert f"such as {secret[0].name}" in checked.reasons
    assert "Read permissions" in checked.reasons


def test_the_end_says_what_could_not_be_seen(tmp_path: Path) -> None:
    entries = without([*standing(), *sound()], "nTSecurityDescriptor")
    file = tmp_path / "reader.ldif"
    file.write_text("".join(write_ldif(entries)), "utf-8")
    done = run("estate", "check", file)
    text = " ".join(done.stdout.split())
    assert done.exit_code == 0
    assert "no faults found in what could be seen" in text
    assert "open_queue: the security descriptor of a queue cannot be read" in text
    assert "(1 left out); give the account the right Read permissions" in text


# --- names and sites ------------------------------------------------------------------------------


@either
@pytest.mark.parametrize(
    "twin",
    [
        (f"CN=WS1,CN=Computers,{ROOT}", {}),
        (f"CN=WS1\\0ACNF:{guid(9)},{OU}", {}),
        (f"CN=other,{OU}", {"sAMAccountName": "ws1$"}),
        (f"CN=other,{OU}", {"dNSHostName": "WS1.corp.example"}),
    ],
    ids=["cn", "conflict", "account", "host"],
)
def test_two_computers_of_one_name(
    check: Check, twin: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    name, given = twin
    entry = made(name, "top", "user", "computer", userAccountControl=4096, **given)
    checked = check(tmp_path, [*standing(), *sound(), entry])
    assert (checked.found, checked.repairs) == (["computer_name_doubled"], [])
    found = checked.told["findings"][0]
    assert {found["where"], found["detail"].split(", as ")[1].removesuffix(" is")} == {
        name,
        f"CN=WS1,{OU}",
    }


@either
def test_twins_without_a_queue_manager_concern_nobody_here(check: Check, tmp_path: Path) -> None:
    twins = [
        made(f"CN=PC,{place}", "top", "user", "computer", sAMAccountName=f"PC{n}$")
        for n, place in enumerate((OU, f"CN=Computers,{ROOT}"))
    ]
    assert check(tmp_path, [*standing(), *sound(), *twins]).found == []


@either
def test_queue_managers_without_a_site(check: Check, tmp_path: Path) -> None:
    bare = without([machine("WS6", 60, BERLIN)], "mSMQSites")
    entries = [*standing(), *sound(), computer("WS6", "10.1.0.6")]
    checked = check(tmp_path, [*entries, *bare])
    assert checked.found == ["machine_without_site"]
    assert checked.told["findings"][0]["detail"] == "it names no site"
    unread = without(bare, "mSMQRoutingServices", "mSMQServiceType", "mSMQEncryptKey")
    checked = check(tmp_path, [*entries, *unread])
    assert (checked.found, checked.unknown) == ([], {"machine_without_site": 1})


# --- repairs and their undo -----------------------------------------------------------------------


def comparable(entries: Iterable[AddEntry]) -> dict[str, dict[str, set[bytes]]]:
    return {
        entry.name: {name.lower(): set(values) for name, values in entry.attributes}
        for entry in entries
    }


@either
def test_the_undo_file_brings_everything_back_but_identifiers(check: Check, tmp_path: Path) -> None:
    estate = [*standing(), *sound(), *(e for planted in faults().values() for e in planted)]
    checked = check(tmp_path, estate)
    assert checked.found == sorted(faults())
    mended = applied(estate, checked.repairs)
    assert comparable(mended) != comparable(estate)
    before, after = comparable(estate), comparable(applied(mended, checked.undo))
    deleted = {change.name for change in checked.repairs if isinstance(change, DeleteEntry)}
    assert len(deleted) == 7
    for name in deleted:
        before[name].pop("objectguid", None)
    assert after == before


@either
def test_old_values_are_deleted_by_value(check: Check, tmp_path: Path) -> None:
    """So that a repair fails if somebody has changed the entry meanwhile."""
    estate = [*standing(), *sound(), *(e for planted in faults().values() for e in planted)]
    replaced = [
        one.attribute
        for change in check(tmp_path, estate).repairs
        if isinstance(change, ModifyEntry)
        for one in change.changes
        if one.kind is ModifyKind.REPLACE
    ]
    assert replaced == ["nTSecurityDescriptor"]


def test_a_deleted_gate_cannot_be_named(tmp_path: Path) -> None:
    name = next(e.name for e in sound() if b"mSMQSiteLink" in e.values("objectClass"))
    dead = f"CN=msmq\\0ADEL:{guid(7)},CN=Deleted Objects,{ROOT}".encode()
    estate = [
        AddEntry(
            e.name, tuple((k, (*v, dead) if k == "mSMQSiteGates" else v) for k, v in e.attributes)
        )
        if e.name == name
        else e
        for e in [*standing(), *sound()]
    ]
    checked = dumped(tmp_path, estate)
    assert checked.found == ["bad_gate"]
    mended = applied(estate, checked.repairs)
    assert comparable(mended) == comparable([*standing(), *sound()])
    assert "# all values are replaced" in (tmp_path / "repairs.ldif").read_text()
    assert comparable(applied(mended, checked.undo)) == comparable(mended)


def test_one_entry_is_deleted_once_and_not_changed_as_well(tmp_path: Path) -> None:
    """An open queue of a queue manager without a computer: two findings, one deletion."""
    estate = [*standing(), *sound(), *faults()["no_computer"]]
    opened = queue_at(f"CN=wide,CN=msmq,{LOST}", 62, EVERYONE)
    checked = dumped(tmp_path, [*estate, opened])
    assert checked.found == ["no_computer", "open_queue"]
    assert [c for c in checked.repairs if c.name == opened.name] == [DeleteEntry(opened.name)]
    assert isinstance(next(c for c in checked.undo if c.name == opened.name), AddEntry)


def test_a_device_gets_the_repairs_alone(tmp_path: Path) -> None:
    file = tmp_path / "estate.ldif"
    entries = [*standing(), *sound(), *faults()["left_settings"]]
    file.write_text("".join(write_ldif(entries)), "utf-8")
    assert run("estate", "check", file, "--ldif", "/dev/null").exit_code == 1
    assert not Path("/dev/null.undo").exists()


@pytest.mark.parametrize("left", ["repairs.ldif", "repairs.undo.ldif"])
def test_an_earlier_way_back_is_not_overwritten(left: str, tmp_path: Path) -> None:
    """After the repairs were applied, a second check finds nothing to take back."""
    estate, repairs = [*standing(), *sound(), *faults()["left_settings"]], fresh(tmp_path)
    first = dumped(tmp_path, estate)
    assert first.undo
    (tmp_path / "estate.ldif").write_text("".join(write_ldif(applied(estate, first.repairs))))
    for other in {repairs, repairs.with_name("repairs.undo.ldif")} - {tmp_path / left}:
        other.unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = run("estate", "check", tmp_path / "estate.ldif", "--ldif", repairs)
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert left in said
    assert "give --ldif another name, or remove both files" in said
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    other_name = tmp_path / "second.ldif"
    assert run("estate", "check", tmp_path / "estate.ldif", "--ldif", other_name).exit_code == 0
    assert records(other_name) == []
