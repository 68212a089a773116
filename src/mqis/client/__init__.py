"""The directory from a client's side: an asyncio library over MS-MQDS."""

from mqis.client.directory import DirectoryClient
from mqis.client.servers import ServerAddress

__all__ = ["DirectoryClient", "ServerAddress"]
