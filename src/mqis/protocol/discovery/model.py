"""The elements of the shared data model that discovery reads and writes (MS-MQSD 3.1.1.1, 3.2.1.1).

A client fills its lists from replies; a server reads its own from the directory.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class DiscoveryQueueManager:
    """The attributes of a queue manager that discovery uses (MS-MQDMPR 3.1.1.1)."""

    #: Enterprise.Identifier; nil for a client that has not joined one.
    enterprise_id: Guid = Guid.NULL
    #: SiteIdentifierList. The first one is Site.Identifier, which the text has in the singular.
    site_ids: tuple[Guid, ...] = ()
    #: DirectoryServerList: NetBIOS names.
    directory_servers: tuple[str, ...] = ()
    #: ConnectedNetworkIdentifierList.
    connected_networks: tuple[Guid, ...] = ()

    @property
    def site_id(self) -> Guid:
        """The first site; nil, which is no server's site, if there is none yet (MQSD-1.3-02)."""
        return self.site_ids[0] if self.site_ids else Guid.NULL


@dataclass(frozen=True, slots=True)
class NetworkAddress:
    """One local network address, as NetworkAddressList has it.

    ``remote_access`` marks a dial-up address, which may lead to another network every time.
    """

    address: str
    remote_access: bool = False
