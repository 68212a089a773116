"""The journal as files: append-only segments, and snapshots that history can start from."""

from mqis.storage.journal.appender import Appender, copy
from mqis.storage.journal.journal import Journal

__all__ = ["Appender", "Journal", "copy"]
