"""An asyncio client library for the directory, over MS-MQDS."""

from typing import TYPE_CHECKING, Any
from warnings import warn

from mqis.client.authentication import SignatureError, machine_signer
from mqis.client.directory import DirectoryClient, LookupEntry
from mqis.client.elements import (
    ConnectedNetwork,
    CryptographicProvider,
    DirectoryElement,
    DirectoryServerType,
    Enterprise,
    NetworkProtocol,
    OperatingSystemType,
    PrivacyLevel,
    Queue,
    QueueManager,
    RoutingLink,
    Scope,
    Site,
    User,
)
from mqis.client.events import ClientEvents
from mqis.client.known import JsonFile, KnownServers
from mqis.client.requests import (
    Filter,
    Operator,
    RequestRefusedError,
    SortOrder,
    default_attributes,
    equal,
)
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.client.servers import LogonRefusedError, NoServerError, ServerAddress
from mqis.client.session import DirectoryConnection, SessionSettings
from mqis.protocol.authentication import AuthLevel, AuthType
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault
from mqis.protocol.security.information import SecurityInformation
from mqis.protocol.security.masks import QueueRights
from mqis.runtime.authentication.credentials import LogonCredentials
from mqis.runtime.rpc.rpc_client import Credentials
from mqis.wire.errors import MqisError
from mqis.wire.guid import Guid
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.propvariant import PropVariant
from mqis.wire.security.acl import Acl, allow
from mqis.wire.security.descriptor import SecurityDescriptor
from mqis.wire.security.sid import Sid

if TYPE_CHECKING:
    from mqis.runtime.authentication.initiator import PyspnegoInitiator

__all__ = [
    "Acl",
    "AuthLevel",
    "AuthType",
    "ClientEvents",
    "ConnectedNetwork",
    "Credentials",
    "CryptographicProvider",
    "DirectoryClient",
    "DirectoryConnection",
    "DirectoryElement",
    "DirectoryError",
    "DirectoryOperationResult",
    "DirectoryServerType",
    "Enterprise",
    "Filter",
    "Guid",
    "HResult",
    "JsonFile",
    "KnownServers",
    "LogonCredentials",
    "LogonRefusedError",
    "LookupEntry",
    "MqisError",
    "NetworkProtocol",
    "NoServerError",
    "ObjectType",
    "OperatingSystemType",
    "Operator",
    "Outcome",
    "PrivacyLevel",
    "PropId",
    "PropVariant",
    "PyspnegoInitiator",
    "Queue",
    "QueueManager",
    "QueueRights",
    "RequestRefusedError",
    "RoutingLink",
    "RpcConnectionError",
    "RpcFault",
    "Scope",
    "SecurityDescriptor",
    "SecurityInformation",
    "ServerAddress",
    "SessionSettings",
    "Sid",
    "SignatureError",
    "Site",
    "SortOrder",
    "User",
    "allow",
    "default_attributes",
    "equal",
    "machine_signer",
]

#: Names that classes had in the version before, and the ones that they have now.
_RENAMED = {
    "Connection": DirectoryConnection,
    "DirectoryEvents": ClientEvents,
    "DirectoryObject": DirectoryElement,
}


def __getattr__(name: str) -> Any:
    """Loads what takes long; finds a class by the name that it had before, for one version."""
    if name == "PyspnegoInitiator":
        from mqis.runtime.authentication import initiator  # noqa: PLC0415

        return initiator.PyspnegoInitiator
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn(f"{name} is now called {_RENAMED[name].__name__}", DeprecationWarning, stacklevel=2)
    return _RENAMED[name]
