"""An asyncio client library for the directory, over MS-MQDS."""

from mqis.client.authentication import SignatureError, machine_signer
from mqis.client.directory import DirectoryClient
from mqis.client.elements import (
    ConnectedNetwork,
    DirectoryObject,
    Enterprise,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    User,
)
from mqis.client.events import DirectoryEvents
from mqis.client.known import JsonFile, KnownServers
from mqis.client.requests import Filter, Operator, SortOrder, default_attributes, equal
from mqis.client.results import DirectoryOperationResult, Outcome
from mqis.client.servers import NoServerError, ServerAddress
from mqis.client.session import Connection, SessionSettings

__all__ = [
    "ConnectedNetwork",
    "Connection",
    "DirectoryClient",
    "DirectoryEvents",
    "DirectoryObject",
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
