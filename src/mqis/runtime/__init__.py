"""asyncio drivers, threads and timers: the thin edge between the machines and the world."""
