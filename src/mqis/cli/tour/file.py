"""The part of the tour about a directory in a file: its contents, export, restore and check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory

from mqis.admin.transfer import export_file, export_store, import_file
from mqis.cli.output import table
from mqis.cli.query import object_as_table, rows_as_table
from mqis.cli.store import counts_of
from mqis.cli.tour.activedirectory import from_ldif
from mqis.cli.tour.guide import Guide
from mqis.cli.tour.reading import table_rows
from mqis.cli.tour.routing import routes
from mqis.cli.tour.wire import over_the_wire
from mqis.config.stores import open_store
from mqis.files import system_reason
from mqis.lab import demo
from mqis.protocol.directory.lookup_query import Order, SortKey
from mqis.protocol.directory.machine_services import ServiceAttributes
from mqis.protocol.directory.object_sources import StoreSource
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION
from mqis.protocol.directory.read_mapping import read_property
from mqis.protocol.errors import StorageError
from mqis.protocol.ports import Store, View
from mqis.texts import counted
from mqis.views.presentation.properties import find_property, parse_condition
from mqis.views.presentation.rendering import shown
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

_EXPECTED = {
    "enterprise": 1,
    "site": 3,
    "network": 3,
    "link": 3,
    "user": 5,
    "machine": 20,
    "queue": 60,
    "partition": 4,
}
_OPERATIONS = 96
_ROLES = {"PEC": 1, "PSC": 2, "BSC": 2}
#: The links of the demonstration enterprise by their sites, with their costs.
LINKS = {
    frozenset({"Amsterdam", "Berlin"}): 10,
    frozenset({"Berlin", "Chicago"}): 20,
    frozenset({"Amsterdam", "Chicago"}): 50,
}
_OWNERS = {
    "(enterprise)": "ams-dir1",
    "Amsterdam": "ams-dir1",
    "Berlin": "ber-dir1",
    "Chicago": "chi-dir1",
}
#: The machines with a queue of orders, the last path first.
_WITH_ORDERS = ("chi-app2", "chi-app1", "ber-app2", "ber-app1", "ams-app2", "ams-app1")


def whole(guide: Guide, store: Path) -> None:
    """Runs all steps on a directory in a file, and on a server of it."""
    guide.line(f"mqis: a tour of the demonstration enterprise {demo.ENTERPRISE_NAME!r}", "bold")
    with _built(guide, store) as made:
        with made.read() as view:
            for step in (_sites, _links, _routes, _partitions, _lookup, _queue):
                step(guide, view)
        _round_trip(guide, made)
        from_ldif(guide)
        over_the_wire(guide, made)
        _check(guide, made)
    _next(guide, store)


def briefly(guide: Guide, store: Path) -> None:
    """Runs the steps that the live enterprise does not show."""
    with _built(guide, store) as made:
        with made.read() as view:
            _lookup(guide, view)
        _round_trip(guide, made)
        from_ldif(guide)
        _check(guide, made)


@contextmanager
def _built(guide: Guide, path: Path) -> Iterator[Store]:
    again = _clear(path)
    if again:
        guide.line(f"{path} holds the enterprise of an earlier tour; building it anew", "dim")
    made = open_store(str(path), create=True)
    try:
        _build(guide, made, path)
        yield made
    finally:
        made.close()


def _clear(path: Path) -> bool:
    """Deletes the store of an earlier tour, and refuses to delete any other."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"{path.parent}: this directory cannot be made: {system_reason(error)}"
        ) from error
    if not path.exists():
        return False
    if path.stat().st_size:
        held = open_store(str(path))
        try:
            with held.read() as view:
                ours = demo.is_demonstration(view) or not any(counts_of(held).values())
        finally:
            held.close()
        if not ours:
            raise StorageError(
                f"{path}: this file holds another directory; name a new file with --store"
            )
    for part in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        part.unlink(missing_ok=True)
    return True


# --- the steps ------------------------------------------------------------------------------------


def _build(guide: Guide, store: Store, path: Path) -> None:
    guide.step("Build", f"objects are created one by one, as a server does it, into {path}")
    writer = demo.build(store)
    counts = counts_of(store)
    summary = ", ".join(counted(number, label) for label, number in counts.items())
    guide.confirm_equal(summary, counts, _EXPECTED)
    commits = counted(writer.commits, "commit")
    guide.confirm_equal(
        f"{writer.operations} operations, made durable by {commits}",
        {"operations": writer.operations, "is durable": writer.commits > 0},
        {"operations": _OPERATIONS, "is durable": True},
    )


def _sites(guide: Guide, view: View) -> None:
    guide.step("Sites", "the sites with their machines and directory servers")
    made = table("site", "authority", "directory servers", "machines", "queues")
    roles: Counter[str] = Counter()
    for site in view.objects(ObjectType.SITE):
        machines = list(view.owned_by(ObjectType.MACHINE, site.id))
        servers = []
        for machine in machines:
            role = ServiceAttributes.of(machine).role
            if role is not None and role.name is not None:
                roles[role.name] += 1
                servers.append(f"{machine.path} ({role.name})")
        queues = sum(1 for m in machines for _ in view.owned_by(ObjectType.QUEUE, m.id))
        psc = str(site.value(PropId.S_PSC))
        made.add_row(site.path, psc, ", ".join(sorted(servers)), str(len(machines)), str(queues))
    shown = table_rows(guide.show(made))
    expected = ", ".join(f"{count} {role}" for role, count in _ROLES.items())
    guide.confirm_equal(f"five directory servers: {expected}", dict(roles), _ROLES)
    guide.confirm_equal(
        "every machine and every queue is at one site",
        [sum(int(row[column]) for row in shown) for column in (-2, -1)],
        [_EXPECTED["machine"], _EXPECTED["queue"]],
    )


def _links(guide: Guide, view: View) -> None:
    guide.step("Routing links", "the cost of sending a message from site to site")
    made = table("from", "to", "cost", "over")
    costs: dict[frozenset[str], int] = {}
    for link in view.objects(ObjectType.ROUTINGLINK):
        ends = [
            shown(p, link.properties[p], StoreSource(view))
            for p in (PropId.L_NEIGHBOR1, PropId.L_NEIGHBOR2)
        ]
        cost = read_property(link, PropId.L_COST, view)
        assert cost is not None
        assert isinstance(cost.value, int)
        costs[frozenset(ends)] = cost.value
        made.add_row(*ends, str(cost.value), str(link.value(PropId.L_DESCRIPTION)))
    told = {frozenset(row[:2]): int(row[2]) for row in table_rows(guide.show(made))}
    guide.confirm_equal("three links, each with its cost", told, LINKS)
    direct = costs[frozenset({"Amsterdam", "Chicago"})]
    around = costs[frozenset({"Amsterdam", "Berlin"})] + costs[frozenset({"Berlin", "Chicago"})]
    guide.confirm(
        f"Amsterdam to Chicago has two routes: {direct} direct, {around} through Berlin",
        around < direct,
        saw=f"{direct} direct, {around} through Berlin",
        expected="the way through Berlin is cheaper",
    )


def _routes(guide: Guide, view: View) -> None:
    routes(guide, view, "ams-desk1", "chi-app1", LINKS)


def _partitions(guide: Guide, view: View) -> None:
    guide.step("Partitions", "each has one authority, which numbers its changes")
    made = table("partition", "authority", "last number", "objects and tombstones")
    whole = True
    for partition in view.partitions():
        site = view.get(ObjectType.SITE, partition.id)
        name = None if site is None else site.path
        if partition.id == ENTERPRISE_PARTITION:
            name = "(enterprise)"
        changes = list(view.changes(partition.id, partition.purged_seq))
        whole &= bool(name and partition.owner) and changes[-1].seq == partition.last_seq
        made.add_row(name, partition.owner, str(partition.last_seq), str(len(changes)))
    shown = table_rows(guide.show(made))
    guide.confirm_equal(
        "four partitions, each with its authority", dict(r[:2] for r in shown), _OWNERS
    )
    guide.confirm(
        "every last number is that of the newest change",
        whole,
        saw=shown,
        expected="the number of the newest change in each row",
    )


def _lookup(guide: Guide, view: View) -> None:
    kind = ObjectType.QUEUE
    guide.step("Lookup", "transactional queues labelled 'Incoming orders', last path first")
    conditions = ("transaction=yes", "label=incoming ORDERS")
    columns = tuple(find_property(kind, word) for word in ("path", "label", "qmid", "create_time"))
    source = StoreSource(view)
    found = source.lookup(
        kind,
        columns,
        [parse_condition(kind, text, source) for text in conditions],
        [SortKey(PropId.Q_PATHNAME, Order.DESCENDING)],
    )
    shown = table_rows(guide.show(rows_as_table(found, columns, source)))
    guide.confirm_equal(
        f"{counted(len(found), 'queue')}, found by the index of labels; case does not matter",
        [row[:2] for row in shown],
        [[f"{machine}\\orders", "Incoming orders"] for machine in _WITH_ORDERS],
    )


def _queue(guide: Guide, view: View) -> None:
    guide.step("One queue", "all stored properties of ams-app1\\payments")
    source = StoreSource(view)
    record = source.get(ObjectType.QUEUE, "AMS-APP1\\Payments")
    rows = table_rows(guide.show(object_as_table(record, source)))
    shown = dict(row[:2] for row in rows if len(row) > 1)
    queue = view.get(ObjectType.QUEUE, record.id)
    host = None if queue is None else view.get(ObjectType.MACHINE, queue.value(PropId.Q_QMID))  # type: ignore[arg-type]
    guide.confirm_equal(
        "it is in the partition of its machine's site; case does not matter in names",
        (shown.get("path"), record.partition),
        ("ams-app1\\payments", None if host is None else host.partition),
    )


def _round_trip(guide: Guide, store: Store) -> None:
    guide.step("Export and restore", "a whole directory as one file, and back")
    first = BytesIO()
    with TemporaryDirectory(prefix="mqis-tour-") as name:
        file, second = Path(name) / "directory.jsonl", open_store(f"{name}/second.db", create=True)
        try:
            lines = export_file(store, file)
            result = import_file(second, file, restore=True)
            export_store(second, first)
        finally:
            second.close()
        size = file.stat().st_size
        same = first.getvalue() == file.read_bytes()
    guide.confirm_equal(
        f"{lines} lines, {size:,} bytes: {sum(result.objects.values())} objects and "
        f"{result.tombstones} tombstone restored into a second store",
        (sum(result.objects.values()), result.tombstones),
        (lines - 1, 1),
    )
    guide.confirm(
        "the second store exports the same bytes",
        same,
        saw=f"{len(first.getvalue()):,} other bytes",
        expected=f"the {size:,} bytes of the first",
    )


def _check(guide: Guide, store: Store) -> None:
    guide.step("Check", "consistency of the store: rows, indexes, sequence numbers, partitions")
    guide.confirm_equal("nothing is wrong", store.check(), [])


def _next(guide: Guide, path: Path) -> None:
    at = quote(str(path))
    guide.line("")
    guide.line("To look around yourself:", "bold")
    for command in (
        f"mqis lookup machine -s {at} --where site_id=Berlin",
        f'mqis lookup queue -s {at} --where "label=Audit trail" --columns path,journal,seq',
        f"mqis get machine ams-dir1 -s {at}",
        f"mqis get queue 'chi-app2\\orders' -s {at} --json",
        f"mqis export directory.jsonl -s {at}",
        f"mqis serve -s {at} --site Amsterdam --mapper-port 0",
    ):
        guide.line(f"  {command}", "cyan")
