"""The asyncio drivers of queue managers."""
