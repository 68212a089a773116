"""Founds the first server of an enterprise: its store before it serves for the first time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from time import time, time_ns

from mqis.config.claims import claimed_store
from mqis.config.errors import NodesError
from mqis.config.file import read
from mqis.config.nodes import NodePlace, Nodes
from mqis.config.stores import open_store
from mqis.enterprise.configs import write_config
from mqis.enterprise.plan import RunPlan
from mqis.files import make_private_directory
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownchange import ChangeKind, OwnChange
from mqis.protocol.directory.ownership import enterprise
from mqis.protocol.ports import Transaction
from mqis.protocol.replication.outgoing_changes import unsent_record
from mqis.runtime.entropy import SystemEntropy
from mqis.runtime.node.signer import MachineKey
from mqis.server.founding import found
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId


def found_pec(plan: RunPlan, nodes: Nodes) -> None:
    """Makes store, key and configuration of the first server, unless it has them."""
    place = nodes.named(plan.pec.name)
    home = Path(place.home)
    make_private_directory(home)
    write_config(plan, nodes, place)
    if _is_founded(place):
        return
    # Written as a draft and renamed: an interrupted founding begins again.
    draft = home / "founding.db"
    for left in home.glob("founding.db*"):
        left.unlink()
    key = MachineKey.open(home / "signing.key")
    journaled = bool(read(Path(place.config)).replication.journal)
    with closing(open_store(str(draft), create=True)) as store:
        found(store, plan.enterprise.name, place.site, place.name, place.address, key=key.public)
        with store.write() as tx:
            made = [_creation(obj) for kind in ObjectType for obj in tx.objects(kind)]
            made.sort(key=lambda change: change.obj.seq)
            _complete(tx, plan, made.append)
            if journaled:  # from the first change on, so that the whole history can be rebuilt
                journal_local_changes(tx, made, time_ns() // 1000)
    draft.replace(place.store)


def _complete(tx: Transaction, plan: RunPlan, made: Callable[[OwnChange], None]) -> None:
    events = DirectoryEvents(tx, int(time()), SystemEntropy(), observe=made)
    events.create_directory_object(
        ObjectType.CN,
        props(
            {
                PropId.CN_NAME: plan.enterprise.network,
                PropId.CN_PROTOCOLID: 1,
            }
        ),
    )


def _creation(obj: DirectoryObject) -> OwnChange:
    return OwnChange(ChangeKind.CREATE, obj, changed=tuple(obj.properties))


def journal_local_changes(tx: Transaction, changes: Iterable[OwnChange], time_us: int) -> None:
    """Writes the records that replication would write; it does not run yet."""
    for change in changes:
        tx.append(unsent_record(change, time_us))


def _is_founded(place: NodePlace) -> bool:
    path = Path(place.store)
    if not path.exists():
        return False
    with claimed_store(str(path)) as store, store.read() as view:
        if enterprise(view) is None:
            raise NodesError(
                f"{path}: this store exists, but holds no enterprise; name another --run"
            )
    return True
