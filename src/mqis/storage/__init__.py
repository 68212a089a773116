"""The implementations of the storage port: memory, SQLite, PostgreSQL.

``journal``: the files of the journal; ``archive``: its copies in a directory or a store of objects.
"""
