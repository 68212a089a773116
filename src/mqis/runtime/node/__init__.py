"""The asyncio driver of a node: its sockets, the store's writer, and the clock."""
