"""An asyncio client library for the directory, over MS-MQDS."""

from typing import Any
from warnings import warn

from mqis.client.authentication import SignatureError, machine_signer
from mqis.client.directory import DirectoryClient
from mqis.client.elements import (
    ConnectedNetwork,
    DirectoryElement,
    Enterprise,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from mqis.client.events import ClientEvents
from mqis.client.known import JsonFile, KnownServers
from mqis.client.requests import Filter, Operator, SortOrder, default_attributes, equal
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.client.servers import NoServerError, ServerAddress
from mqis.client.session import DirectoryConnection, SessionSettings
from mqis.protocol.errors import DirectoryError
from mqis.protocol.rpc.faults import RpcConnectionError, RpcFault

__all__ = [
    "ClientEvents",
    "ConnectedNetwork",
    "DirectoryClient",
    "DirectoryConnection",
    "DirectoryElement",
    "DirectoryError",
    "DirectoryOperationResult",
    "Enterprise",
    "Filter",
    "JsonFile",
    "KnownServers",
    "NoServerError",
    "Operator",
    "Outcome",
    "Queue",
    "QueueManager",
    "RoutingLink",
    "RpcConnectionError",
    "RpcFault",
    "ServerAddress",
    "SessionSettings",
    "SignatureError",
    "Site",
    "SortOrder",
    "User",
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
    """Finds a class by the name that it had before, for one version."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warn(f"{name} is now called {_RENAMED[name].__name__}", DeprecationWarning, stacklevel=2)
    return _RENAMED[name]
