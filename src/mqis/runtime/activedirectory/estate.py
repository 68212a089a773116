"""Reads all objects of a forest: of a controller of each domain, or of LDIF files.

    estate = EstateReader.of([await ForestReader.open(client)])
    async for obj in estate.objects():
        ...

The domains of a forest share its configuration, which has sites and links; each has machines,
queues and users of its own. LDAP has no snapshot: an entry that is deleted meanwhile is missing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from mqis.protocol.activedirectory.certificates import CERTIFIED
from mqis.protocol.directory.objects import ENTERPRISE_PARTITION, DirectoryObject
from mqis.protocol.errors import ProtocolError
from mqis.protocol.ldap.errors import LdapRefused
from mqis.runtime.activedirectory.reading import ForestReader, Gates, ReadObject, gates_in
from mqis.wire.guid import Guid
from mqis.wire.ldap.codes import ResultCode
from mqis.wire.ldap.names import DistinguishedName
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId

#: The types in an order in which everything comes before what refers to it.
IN_ORDER: Final = (
    ObjectType.ENTERPRISE,
    ObjectType.SITE,
    ObjectType.MACHINE,
    ObjectType.ROUTINGLINK,
    ObjectType.USER,
    ObjectType.QUEUE,
)
#: The types whose entries stand in the domains, not in the configuration.
OF_DOMAINS: Final = frozenset({ObjectType.MACHINE, ObjectType.USER, ObjectType.QUEUE})


@dataclass(frozen=True, slots=True)
class EstateReader:
    """The readers of the domains of one forest; the first one reads the configuration."""

    domains: tuple[ForestReader, ...]

    @classmethod
    def of(cls, domains: Sequence[ForestReader]) -> EstateReader:
        """``ProtocolError`` if these are not different domains of one forest.

        Two forests have two enterprises; one domain would be read twice.
        """
        first, seen = domains[0].forest, set[object]()
        for forest in (domain.forest for domain in domains):
            if forest.configuration.key != first.configuration.key:
                raise ProtocolError(
                    f"{forest.domain} belongs to another forest than {first.domain}: take a store "
                    "of its own for it"
                )
            if forest.domain.key in seen:
                raise ProtocolError(
                    f"two of these are controllers of {forest.domain}: name one of each domain"
                )
            seen.add(forest.domain.key)
        return cls(tuple(domains))

    @property
    def first(self) -> ForestReader:
        return self.domains[0]

    def reader_at(self, name: DistinguishedName) -> ForestReader:
        """The reader of the domain that a name is in; the first one for the configuration.

        A child domain's name is below its parent's: the longest one that fits is meant.
        """
        found = [domain for domain in self.domains if name.is_below(domain.forest.domain)]
        if not found or name.is_below(self.first.forest.configuration):
            return self.first
        return max(found, key=lambda domain: len(domain.forest.domain.parts))

    async def objects(
        self, types: Sequence[ObjectType] = IN_ORDER
    ) -> AsyncGenerator[DirectoryObject, None]:
        """Yields all objects, type after type. Of users, those with certificates."""
        async with aclosing(self.found(types)) as found:
            async for each in found:
                yield each.obj

    async def found(
        self, types: Sequence[ObjectType] = IN_ORDER
    ) -> AsyncGenerator[ReadObject, None]:
        """Yields them with the entries that they were made of.

        Machines and queues get the partitions of their sites, as in a store of our own: the
        identifier of each machine is remembered until its queues have come.
        """
        partitions: dict[Guid, Guid] = {}
        gates = await self._gates() if ObjectType.SITE in types else {}
        for object_type in types:
            for domain in self.domains if object_type in OF_DOMAINS else self.domains[:1]:
                async with aclosing(_all_of(domain, object_type, gates)) as found:
                    async for each in found:
                        if object_type is ObjectType.MACHINE:
                            partitions[each.obj.id] = each.obj.partition
                        yield ReadObject(each.entry, _placed(each.obj, partitions))

    async def _gates(self) -> Gates:
        try:
            return await gates_in(self.domains)
        except LdapRefused as error:
            if error.code != ResultCode.NO_SUCH_OBJECT:
                raise
            return {}


async def _all_of(
    domain: ForestReader, object_type: ObjectType, gates: Gates
) -> AsyncGenerator[ReadObject, None]:
    """A base that does not exist has no entries: CN=MsmqServices may never have been made."""
    condition = CERTIFIED if object_type is ObjectType.USER else None
    try:
        async with aclosing(domain.found(object_type, condition, gates=gates)) as found:
            async for each in found:
                yield each
    except LdapRefused as error:
        if error.code != ResultCode.NO_SUCH_OBJECT:
            raise


def _placed(obj: DirectoryObject, partitions: dict[Guid, Guid]) -> DirectoryObject:
    machine = obj.value(PropId.Q_QMID) if obj.type is ObjectType.QUEUE else None
    if not isinstance(machine, Guid):
        return obj
    return replace(obj, partition=partitions.get(machine, ENTERPRISE_PARTITION))
