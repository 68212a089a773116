"""The archive of journals: closed segments and snapshots, copied to a place that outlives a disk.

An archive has one directory for each journal, named after the server's GUID. A server whose journal
was begun anew (after a restore) numbers its segments from 1 again, so that journal goes into
``GUID.2``, and so on. The files are those of the journal, byte for byte: their headers chain them,
and ``mqis journal check`` and the pipeline read an archive like a journal.
"""

from mqis.storage.archive.archiver import Archiver, ArchiveStatus
from mqis.storage.archive.restoring_journals import archived_journals, restore_journal

__all__ = ["ArchiveStatus", "Archiver", "archived_journals", "restore_journal"]
