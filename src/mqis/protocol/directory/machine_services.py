"""The services of a queue manager for others: PROPID_QM_SERVICE and its kin.

Four attributes (RoutingServer, RemoteAccessServer, DirectoryServer, DirectoryServerType) show as
one bit set (210) and as flags of their own (227, 228). Stored are 210 and 228: a directory server
that is neither PEC, PSC nor BSC sets no bit in 210, so 228 alone remembers it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntFlag
from functools import lru_cache

from mqis.protocol.directory.types.property_row import StoredObject
from mqis.wire.mqds.catalogue import props
from mqis.wire.mqds.propid import PropId
from mqis.wire.propertybag import Properties
from mqis.wire.propvariant import PropVariant, Value


class ServiceBits(IntFlag):
    """MS-MQDS 3.1.4.21.8.1.2."""

    ROUTING = 0x01
    BSC = 0x02
    PSC = 0x04
    PEC = 0x08
    RAS = 0x10


_ROLES = (ServiceBits.PEC, ServiceBits.PSC, ServiceBits.BSC)


@dataclass(frozen=True, slots=True)
class ServiceAttributes:
    """The four attributes. ``role`` None with ``directory_server`` means a stand-alone one."""

    routing: bool = False
    remote_access: bool = False
    directory_server: bool = False
    role: ServiceBits | None = None

    @classmethod
    def of(cls, obj: StoredObject) -> ServiceAttributes:
        """Returns the attributes of a machine."""
        return cls._of(obj.value(PropId.QM_SERVICE), obj.value(PropId.QM_SERVICE_DSSERVER))

    @classmethod
    def of_properties(cls, stored: Properties) -> ServiceAttributes:
        """Returns the attributes of a machine that has these stored properties."""
        bits, flag = stored.get(PropId.QM_SERVICE), stored.get(PropId.QM_SERVICE_DSSERVER)
        return cls._of(bits.value if bits else None, flag.value if flag else None)

    @classmethod
    def _of(cls, bits: Value, flag: Value) -> ServiceAttributes:
        service = cls.from_bits(bits if isinstance(bits, int) else 0)
        return replace(service, directory_server=True) if flag == 1 else service

    @classmethod
    @lru_cache(maxsize=64)
    def from_bits(cls, bits: int) -> ServiceAttributes:
        """MS-MQDS 3.1.4.21.8.3.2. Of several roles the highest wins."""
        role = next((role for role in _ROLES if bits & role), None)
        return cls(
            routing=bool(bits & ServiceBits.ROUTING),
            remote_access=bool(bits & ServiceBits.RAS),
            directory_server=role is not None,
            role=role,
        )

    @property
    def bits(self) -> int:
        bits = self.role or 0
        if self.routing:
            bits |= ServiceBits.ROUTING
        if self.remote_access:
            bits |= ServiceBits.RAS
        return int(bits)

    def with_routing(self, flag: bool) -> ServiceAttributes:
        return replace(self, routing=flag)

    def with_directory_server(self, flag: bool) -> ServiceAttributes:
        """Writing 228: a stand-alone server, or none (MS-MQDS 3.1.4.21.8.2.1)."""
        return replace(self, directory_server=flag, role=None)

    def as_properties(self) -> dict[int, PropVariant]:
        return props(
            {
                PropId.QM_SERVICE: self.bits,
                PropId.QM_SERVICE_DSSERVER: int(self.directory_server),
            }
        )
