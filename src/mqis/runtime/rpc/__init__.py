"""DCE/RPC on asyncio: the drivers of associations, and the services that every server has."""
