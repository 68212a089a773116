"""Keeps the directory right about a running server: its key, its role, and the only PSC.

A server that just joined is right already. A server that was promoted, or follows another PSC now,
has another role than its machine object says. The PSC of a site makes sure that no other machine of
the site is marked as a PSC, since backups follow any PSC of their site (3.2.7.1, E57).

The machine object lists the keys of the key file, the one that signs first. A site that has a key
of its PSC has the one that signs: so a server that missed a rotation learns the key from the PEC.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from mqis.protocol.clock import pause_after
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.directory.machine_services import ServiceAttributes, ServiceBits
from mqis.protocol.directory.objects import DirectoryObject
from mqis.protocol.directory.ownership import authority
from mqis.protocol.errors import DirectoryError, StorageError
from mqis.protocol.ports import Store, View
from mqis.protocol.replication.admission import owns
from mqis.protocol.replication.server_identity import Role, Server
from mqis.runtime.node.driver import NodeDriver
from mqis.runtime.node.keyring import ServerKey
from mqis.wire.guid import Guid
from mqis.wire.mqds.catalogue import prop
from mqis.wire.mqds.keys import RsaPublicKey, key_list
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant

log = logging.getLogger(__name__)

#: Seconds until the next attempt, doubled each time, and their maximum.
_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0

_BITS = {Role.PEC: ServiceBits.PEC, Role.PSC: ServiceBits.PSC, Role.BSC: ServiceBits.BSC}
_PRIMARY = (ServiceBits.PSC, ServiceBits.PEC)


@dataclass(frozen=True, slots=True)
class Correction:
    """A change that a machine or site object needs."""

    subject: DirectoryObject
    values: dict[int, PropVariant]

    def make(self, events: DirectoryEvents) -> DirectoryObject:
        subject = self.subject
        current = events.transaction.get(subject.type, subject.id) or subject
        return events.set_stored(current, self.values)


async def publish(
    store: Store, me: Server, driver: NodeDriver, key: ServerKey | None, news: asyncio.Event
) -> None:
    """Corrects the directory; returns when it is right.

    It retries while the authority is recovering or does not answer, and while this copy of the
    directory does not yet show that this server was promoted; at once when there is ``news``.
    """
    attempts = 0
    while True:
        wrong: list[Correction] = []
        settled = False
        news.clear()
        keys = () if key is None else key.ring.published
        # A store that fails reports that itself; the next attempt may succeed.
        with suppress(StorageError), store.read() as view:
            wrong = list(corrections(view, me, keys))
            settled = _agrees(view, me)
        for correction in wrong:
            try:
                await driver.change(partial(Correction.make, correction))
            except (DirectoryError, StorageError) as error:
                settled = False
                if not attempts:
                    log.warning(
                        "this machine's key or role cannot be published in the directory yet: %s",
                        error,
                    )
            else:
                _log_correction(correction, me)
        if settled:
            return
        attempts += 1
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_after(attempts, _PAUSE_S, _MAX_PAUSE_S)):
                await news.wait()


def _log_correction(correction: Correction, me: Server) -> None:
    if correction.subject.type is ObjectType.SITE:
        log.info("the site has this machine's key now")
        return
    if correction.subject.id != me.id:
        log.info("%s is a backup of this site now", correction.subject.path)
        return
    if PropId.QM_SIGN_PKS in correction.values:
        log.info("the directory has this machine's key now")
    if PropId.QM_SERVICE in correction.values:
        log.info("the directory says that this machine is a %s now", me.role.value)


def _agrees(view: View, me: Server) -> bool:
    """True if the directory names this server for its role; a replaced PSC is not named."""
    owner = authority(Guid.NULL if me.is_pec else me.site, view) or ""
    return me.is_called(owner) is not me.is_bsc


def corrections(view: View, me: Server, keys: tuple[RsaPublicKey, ...]) -> Iterator[Correction]:
    """Yields the changes that the directory needs; ``keys`` are ours, the one that signs first."""
    machine = view.get(ObjectType.MACHINE, me.id)
    if machine is None:
        return
    values: dict[int, PropVariant] = {}
    if keys and machine.value(PropId.QM_SIGN_PKS) != key_list(*keys):
        values[PropId.QM_SIGN_PKS] = prop(PropId.QM_SIGN_PKS, key_list(*keys))
    if _agrees(view, me):
        values |= _with_role(machine, _BITS[me.role])
    if values:
        yield Correction(machine, values)
    site = view.get(ObjectType.SITE, me.site)
    if keys and site is not None and me.is_called(str(site.value(PropId.S_PSC) or "")):
        listed = site.value(PropId.S_PSC_SIGNPK)
        if listed and listed != key_list(keys[0]):
            value = prop(PropId.S_PSC_SIGNPK, key_list(keys[0]))
            yield Correction(site, {PropId.S_PSC_SIGNPK: value})
    if me.is_psc and _agrees(view, me) and owns(view, me, me.site):
        for other in view.owned_by(ObjectType.MACHINE, me.site):
            if other.id != me.id and ServiceAttributes.of(other).role in _PRIMARY:
                yield Correction(other, _with_role(other, ServiceBits.BSC))


def _with_role(machine: DirectoryObject, role: ServiceBits) -> dict[int, PropVariant]:
    service = ServiceAttributes.of(machine)
    if service.role is role:
        return {}
    return replace(service, directory_server=True, role=role).as_properties()
