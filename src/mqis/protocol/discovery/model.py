"""The elements of the shared data model that discovery reads and writes (MS-MQSD 3.1.1.1, 3.2.1.1).

A client's lists are filled by what it finds; a server's come from the directory.
"""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.guid import Guid


@dataclass(frozen=True, slots=True)
class LocalQueueManager:
    """As much of a queue manager as discovery knows (MS-MQDMPR 3.1.1.1)."""

    #: Enterprise.Identifier; nil of a client that has not joined one.
    enterprise_id: Guid = Guid.NULL
    #: SiteIdentifierList. The first one is Site.Identifier, which the text has in the singular.
    site_ids: tuple[Guid, ...] = ()
    #: DirectoryServerList: NetBIOS names.
    directory_servers: tuple[str, ...] = ()
    #: ConnectedNetworkIdentifierList.
    connected_networks: tuple[Guid, ...] = ()

    @property
    def site_id(self) -> Guid:
        """Nil for one that is in no site yet: no server's site equals it (MQSD-1.3-02)."""
        return self.site_ids[0] if self.site_ids else Guid.NULL


@dataclass(frozen=True, slots=True)
class Network:
    """One local network address, as NetworkAddressList has it.

    ``remote_access`` marks a dial-up one, behind which another network may be every time.
    """

    address: str
    remote_access: bool = False
