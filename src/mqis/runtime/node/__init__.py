"""The asyncio driver of a node: sockets, the store's writer, and a clock."""
