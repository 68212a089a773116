"""Spark finds the source ``mqis.journal`` by this module: nobody has to register it."""

from mqis.pipeline.sources.journal import JournalSource as DefaultSource

__all__ = ["DefaultSource"]
