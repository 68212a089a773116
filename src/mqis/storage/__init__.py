"""The implementations of the storage port: memory, SQLite, PostgreSQL."""
