"""A mirror says "equal" only if it is: what it lacks, why, and what it has missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mqis.admin.activedirectory.mirror.round import EstateMirror
from mqis.cli.main import app
from mqis.cli.options import claimed
from mqis.config.stores import open_store
from mqis.protocol.activedirectory.mirror.cursor import (
    COMPARE_S,
    MIRROR_CURSOR,
    MIRROR_FAMILY,
    read_cursor,
)
from mqis.protocol.activedirectory.mirror.leftout import (
    MIRROR_LEFT_OUT,
    LeftOut,
    LeftOutReason,
    read_left_out,
)
from mqis.protocol.errors import StorageError
from mqis.storage.memory_store import MemoryStore
from mqis.wire.guid import Guid
from mqis.wire.ldap.changes import RenameEntry
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.ldap.responses import SearchEntry
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from tests.admin.activedirectory.mirrored import MirroredEstate, mirrored
from tests.admin.activedirectory.test_mirror import WAYS

#: Octets that are no list of public keys, as computers have them (E-MQDSSM-22).
BAD_KEY = b"no key"


class Commands:
    """Runs ``mqis mirror`` with a store on disk, against the server of the test."""

    def __init__(self, estate: MirroredEstate, directory: Path) -> None:
        self.estate = estate
        self.store = directory / "estate.db"

    async def run(self, *options: str, status: int = 0) -> dict[str, Any]:
        """The document that the command prints."""
        whole = ("mirror", *options, "--store", str(self.store), "--json")
        result = await asyncio.to_thread(CliRunner().invoke, app, whole)
        assert result.exit_code == status, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    async def follow(self, *options: str, status: int = 0) -> dict[str, Any]:
        asked = (self.estate.server.url, "--method", "anonymous", *(options or ("--once",)))
        return await self.run(*asked, status=status)

    async def status(self) -> dict[str, Any]:
        return await self.run("--status")

    def paths(self, kind: ObjectType = ObjectType.QUEUE) -> dict[str, Guid]:
        with closing(open_store(str(self.store))) as found, found.read() as view:
            return {obj.path or "": obj.id for obj in view.objects(kind)}


def commanded(
    test: Callable[[MirroredEstate, Commands], Awaitable[None]], directory: Path, **way: Any
) -> None:
    async def run(estate: MirroredEstate) -> None:
        await test(estate, Commands(estate, directory))

    mirrored(run, **way)


def add_machine(estate: MirroredEstate, computer: str, **attributes: bytes) -> Guid:
    return estate.server.put(
        f"CN=msmq,{computer}",
        objectClass=b"mSMQConfiguration",
        mSMQSites=estate.berlin.raw,
        **attributes,
    )


def swap(estate: MirroredEstate, first: str, second: str) -> None:
    """Exchanges the common names of two entries of one container."""
    (one, above), (two, _) = (name.split(",", 1) for name in (first, second))
    for old, new in ((one, "CN=aside"), (two, one), ("CN=aside", two)):
        estate.server.change(RenameEntry(f"{old},{above}", new))


def swap_accounts(estate: MirroredEstate, *computers: str) -> None:
    """Gives each computer the account name that its entry is called by now."""
    for name in computers:
        found = next(e for e in estate.server.entries if e.name == name)
        leaf = DistinguishedName.parse(name).leaf
        guid = Guid(found.values("objectGUID")[0])
        estate.set(guid, "sAMAccountName", f"{leaf}$".encode())


# --- the four cases -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_names_that_are_exchanged(tmp_path: Path, way: dict[str, Any]) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        other = estate.server.add_computer("SRV2")
        machine = add_machine(estate, other)
        await mqis.follow()
        at = f"CN=msmq,{estate.computer}"
        swap(estate, f"CN=orders,{at}", f"CN=bills,{at}")
        swap(estate, estate.computer, other)
        swap_accounts(estate, estate.computer, other)
        done = await mqis.follow()
        assert (done["equal"], done["left_out"]) == (True, [])
        assert mqis.paths() == {"srv2\\bills": estate.orders, "srv2\\orders": estate.bills}
        assert mqis.paths(ObjectType.MACHINE) == {"SRV2": estate.machine, "SRV1": machine}
        assert (await mqis.follow("--compare"))["differences"] == []

    commanded(test, tmp_path, **way)


@pytest.mark.parametrize("way", WAYS)
def test_two_computers_of_one_name_of_which_the_first_is_deleted(
    tmp_path: Path, way: dict[str, Any]
) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        await mqis.follow()
        branch = f"OU=Branch,{estate.server.root}"
        estate.server.put(branch, objectClass=b"organizationalUnit")
        twin = f"CN=SRV1,{branch}"
        estate.server.put(twin, objectClass=(b"top", b"user", b"computer"))
        machine = add_machine(estate, twin)
        queue = estate.server.put(f"CN=orders,CN=msmq,{twin}", objectClass=b"mSMQQueue")
        await mqis.follow()
        said = await mqis.status()
        assert said["equal"] is False
        reasons = {item["id"]: item["reason"] for item in said["left_out"]}
        assert reasons == {str(machine): "name", str(queue): "host"}
        assert estate.orders in mqis.paths().values()

        estate.delete(estate.machine, tree=True)
        done = await mqis.follow()
        assert (done["equal"], done["left_out"]) == (True, [])
        assert mqis.paths(ObjectType.MACHINE) == {"SRV1": machine}
        assert mqis.paths() == {"srv1\\orders": queue}
        assert (await mqis.follow("--compare"))["differences"] == []

    commanded(test, tmp_path, **way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["first", "later"])
def test_a_machine_with_a_bad_key_is_kept_and_its_queues_come(
    tmp_path: Path, first: str, way: dict[str, Any]
) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        if first == "later":
            await mqis.follow()
        computer = estate.server.add_computer("SRV2", mSMQSignCertificates=BAD_KEY)
        machine = add_machine(estate, computer)
        queue = estate.server.put(f"CN=jobs,CN=msmq,{computer}", objectClass=b"mSMQQueue")
        await mqis.follow()
        assert mqis.paths()["srv2\\jobs"] == queue
        said = await mqis.status()
        (item,) = said["left_out"]
        assert (item["id"], item["reason"], said["equal"]) == (str(machine), "default", False)
        assert "PROPID_QM_SIGN_PKS" in item["detail"]

        account = estate.server.entries[[e.name for e in estate.server.entries].index(computer)]
        estate.set(Guid(account.values("objectGUID")[0]), "mSMQSignCertificates")
        assert (await mqis.follow())["equal"] is True
        assert (await mqis.status())["left_out"] == []

    commanded(test, tmp_path, **way)


def test_a_machine_that_is_refused_and_mended_brings_its_queues(tmp_path: Path) -> None:
    """Its permissions cannot be read: without them it would be open to everybody."""

    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        good = estate.server.by_guid(estate.machine)
        assert good is not None
        (descriptor,) = good.values("nTSecurityDescriptor")
        estate.set(estate.machine, "nTSecurityDescriptor", b"garbled")
        await mqis.follow()
        said = await mqis.status()
        reasons = sorted(item["reason"] for item in said["left_out"])
        assert reasons == ["host", "host", "value"]
        assert mqis.paths() == {}
        estate.set(estate.machine, "nTSecurityDescriptor", descriptor)
        assert (await mqis.follow())["equal"] is True
        assert sorted(mqis.paths()) == ["srv1\\bills", "srv1\\orders"]

    commanded(test, tmp_path)


@pytest.mark.parametrize("way", WAYS)
def test_a_controller_put_back_from_a_copy_and_changed_past_its_number(
    tmp_path: Path, way: dict[str, Any]
) -> None:
    """It has the same invocationId, and numbers that the mirror has seen for other changes."""

    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        await mqis.follow()
        copy, number = list(estate.server.entries), estate.server.usn
        estate.label(estate.orders, b"lost")
        lost = estate.add_queue("lost")
        await mqis.follow()
        estate.server.entries, estate.server.usn = copy, number
        for text in (b"one", b"two", b"three", b"four"):
            estate.label(estate.bills, text)
        late = estate.add_queue("late")
        done = await mqis.follow()
        assert done["fresh"] is None  # nothing tells it

        found = await mqis.follow("--compare", status=1)
        told = {(d["difference"], d["name"], *d["properties"]) for d in found["differences"]}
        assert ("changed", "srv1\\orders", "Q_LABEL") in told
        assert ("left_over", "srv1\\lost") in told
        assert len(told) == 2
        assert mqis.paths() == {
            "srv1\\bills": estate.bills, "srv1\\late": late, "srv1\\orders": estate.orders,
        }  # fmt: skip
        assert lost not in mqis.paths().values()
        assert (await mqis.status())["differed"] == 2
        assert (await mqis.follow("--compare"))["differences"] == []
        assert (await mqis.status())["differed"] == 0

    if way.get("shows_deleted") is not False:  # else the next round misses the queue itself
        commanded(test, tmp_path, **way)


# --- comparisons ----------------------------------------------------------------------------------


@pytest.mark.req("SEC-15-11")
def test_everything_is_compared_once_a_day_across_restarts() -> None:
    async def test(estate: MirroredEstate) -> None:
        now = 1_800_000_000.0

        def process() -> EstateMirror:
            return EstateMirror(estate.client, estate.store, "corp.example", clock=lambda: now)

        await process().round()
        forge(estate, estate.orders, b"forged")
        now += COMPARE_S - 1
        assert (await process().round()).fresh == ""
        assert label(estate, estate.orders) == ""
        now += 1
        done = await process().round()
        assert done.fresh == "this is done once a day"
        assert [(d.what, d.id) for d in done.differences] == [("changed", estate.orders)]
        assert label(estate, estate.orders) == "forged"
        now += COMPARE_S - 1
        assert (await process().round()).fresh == ""

    mirrored(test)


def label(estate: MirroredEstate, queue: Guid) -> object:
    return estate.value(ObjectType.QUEUE, queue, PropId.Q_LABEL)


def forge(estate: MirroredEstate, guid: Guid, text: bytes) -> None:
    """Changes an entry without a number: as a mirror sees a change that it has missed."""
    held = estate.server.entries
    for at, found in enumerate(held):
        if found.values("objectGUID") == (guid.raw,):
            rows = {**dict(found.attributes), "mSMQLabelEx": (text,)}
            held[at] = SearchEntry(found.name, tuple(rows.items()))


def test_what_changes_before_and_while_it_is_compared_is_no_difference() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.label(estate.orders, b"before")
        gone = estate.add_queue("gone")
        waited = 0

        def change(_request: object) -> None:
            nonlocal waited
            waited += 1
            if waited == 30:
                estate.label(estate.bills, b"meanwhile")
                estate.delete(gone)
                estate.server.change(RenameEntry(estate.computer, "CN=SRV9"))
                estate.set(estate.computer_id, "sAMAccountName", b"SRV9$")
            else:
                estate.server.before_search.append(change)

        estate.server.before_search.append(change)
        done = await estate.mirror.round(compare=True)
        assert waited >= 30
        assert done.differences == []
        estate.server.before_search.clear()
        await estate.mirror.round()
        assert label(estate, estate.bills) == "meanwhile"
        assert estate.held()["queue"] == ["srv9\\bills", "srv9\\orders"]

    mirrored(test)


def test_text_shows_some_differences_and_json_all(tmp_path: Path) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        queues = [estate.add_queue(f"q{number:02}") for number in range(30)]
        await mqis.follow()
        for queue in queues:
            forge(estate, queue, b"forged")
        whole = ("mirror", estate.server.url, "--method", "anonymous", "--compare", "--store")
        result = await asyncio.to_thread(CliRunner().invoke, app, (*whole, str(mqis.store)))
        assert result.exit_code == 1
        assert "30 differences" in result.output
        assert result.output.count("differed in Q_LABEL") == 20
        assert "and 10 more" in result.output
        for queue in queues:
            forge(estate, queue, b"again")
        found = await mqis.follow("--compare", status=1)
        assert len(found["differences"]) == 30

    commanded(test, tmp_path)


def test_a_position_of_an_older_mqis_is_compared_at_once(tmp_path: Path) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        await mqis.follow()
        with claimed(str(mqis.store)) as store, store.write() as tx:
            cursor = read_cursor(tx)
            assert cursor is not None
            old = json.loads(cursor.to_bytes())
            del old["compared_s"], old["differed"]
            old["waiting"] = []
            tx.put_state(MIRROR_FAMILY, MIRROR_CURSOR, json.dumps(old).encode())
        said = await asyncio.to_thread(
            CliRunner().invoke, app, ("mirror", "--status", "--store", str(mqis.store))
        )
        assert "it was never compared as a whole" in said.output
        assert (await mqis.follow())["fresh"] == "this is done once a day"

    commanded(test, tmp_path)


# --- what is left out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "value", "propid", "kept"),
    [
        ("mSMQPrivacyLevel", b"9", PropId.Q_PRIV_LEVEL, 1),
        ("mSMQQueueQuota", b"many", PropId.Q_QUOTA, 0xFFFFFFFF),
        ("mSMQBasePriority", b"99999", PropId.Q_BASEPRIORITY, 32767),
    ],
)
def test_a_garbled_value_is_noted_and_the_queue_kept(
    attribute: str, value: bytes, propid: PropId, kept: object
) -> None:
    """In a round of changes and in a comparison alike, until the value is mended."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        estate.set(estate.orders, attribute, value)
        estate.label(estate.orders, b"also changed")
        for compare in (False, True, False):
            done = await estate.mirror.round(compare=compare)
            item = done.left_out[estate.orders]
            assert item.reason is LeftOutReason.DEFAULT
            assert attribute in item.detail
            assert estate.value(ObjectType.QUEUE, estate.orders, propid) == kept
            assert label(estate, estate.orders) == "also changed"
            assert done.differences == []
        estate.set(estate.orders, attribute)
        assert (await estate.mirror.round()).left_out == {}

    mirrored(test)


@pytest.mark.req("SEC-15-10")
def test_the_sentence_of_the_status(tmp_path: Path) -> None:
    async def test(estate: MirroredEstate, mqis: Commands) -> None:
        async def said() -> str:
            whole = ("mirror", "--status", "--store", str(mqis.store))
            return (await asyncio.to_thread(CliRunner().invoke, app, whole)).output

        await mqis.follow()
        number = estate.server.usn
        assert (await said()).startswith(f"equal to dc1.corp.example up to change {number}: ")
        estate.set(estate.orders, "mSMQPrivacyLevel", b"9")
        estate.set(estate.bills, "nTSecurityDescriptor", b"garbled")
        await mqis.follow()
        text = " ".join((await said()).split())
        assert ("but for 2 left out (1 with a bad value, 1 whose bad value has a default instead)"
                in text)  # fmt: skip
        assert "mSMQPrivacyLevel" in text

    commanded(test, tmp_path)


def test_an_object_that_cannot_be_read_is_named_as_left_out() -> None:
    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        found = estate.server.by_guid(estate.orders)
        assert found is not None
        at = estate.server.entries.index(found)
        estate.label(estate.orders, b"hidden")
        whole = estate.server.entries[at]
        shown = {"uSNChanged", "objectGUID"}
        bare = SearchEntry(whole.name, tuple(row for row in whole.attributes if row[0] in shown))
        estate.server.entries[at] = bare
        done = await estate.mirror.round(compare=True)
        assert done.left_out[estate.orders].reason is LeftOutReason.UNREAD
        assert "srv1\\orders" in estate.held()["queue"]
        estate.server.entries[at] = whole
        assert (await estate.mirror.round()).left_out == {}
        assert label(estate, estate.orders) == "hidden"

    mirrored(test)


def test_a_gate_that_is_shown_again_with_a_bad_descriptor_is_a_gate_of_its_site() -> None:
    """Nothing can be made of the machine, but it shows that it stands in the site."""

    async def test(estate: MirroredEstate) -> None:
        await estate.mirror.round()
        at = estate.server.entries.index(next(e for e in estate.server.entries if is_gate(e)))
        estate.set(estate.machine, "nTSecurityDescriptor", b"no descriptor")
        whole = estate.server.entries[at]
        shown = {"uSNChanged", "objectGUID"}
        bare = SearchEntry(whole.name, tuple(row for row in whole.attributes if row[0] in shown))
        estate.server.entries[at] = bare
        await estate.mirror.round(compare=True)
        assert estate.value(ObjectType.SITE, estate.berlin, PropId.S_GATES) == ()
        estate.server.entries[at] = whole
        done = await estate.mirror.round()
        assert done.left_out[estate.machine].reason is LeftOutReason.VALUE
        assert estate.value(ObjectType.SITE, estate.berlin, PropId.S_GATES) == (estate.machine,)

    def is_gate(entry: SearchEntry) -> bool:
        return b"mSMQConfiguration" in entry.values("objectClass")

    mirrored(test)


def test_what_is_left_out_survives_the_process_and_garbage_is_told() -> None:
    store = MemoryStore()
    item = LeftOut(
        LeftOutReason.HOST, "queue a\\b: gone", ObjectType.QUEUE, "a\\b", Guid(b"H" * 16)
    )
    for kept in (item, LeftOut(LeftOutReason.UNREAD, "hidden")):
        assert LeftOut.from_bytes(kept.to_bytes()) == kept
    long = LeftOut(LeftOutReason.VALUE, "x" * 10_000, name="y" * 500)
    assert len(LeftOut.from_bytes(long.to_bytes()).detail) < 500
    assert LeftOut.from_bytes(long.to_bytes()).name == "y" * 500
    for data in (b"", b"[]", b"{}", b'{"reason": "none", "detail": ""}'):
        with store.write() as tx:
            tx.put_state(MIRROR_LEFT_OUT, bytes(16), data)
        with store.read() as view, pytest.raises(StorageError, match="is damaged"):
            read_left_out(view)
