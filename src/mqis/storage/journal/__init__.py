"""The journal's files: append-only segments, and snapshots as starting points."""

from mqis.storage.journal.appender import Appender, copy
from mqis.storage.journal.journal import Journal

__all__ = ["Appender", "Journal", "copy"]
