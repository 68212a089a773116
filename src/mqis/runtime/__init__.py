"""Drivers of the state machines: asyncio, sockets, threads and timers."""
