"""What stands behind the storage port: memory, SQLite, PostgreSQL."""
