"""DCE/RPC on asyncio: drivers for the association machines, and the services every server has."""
