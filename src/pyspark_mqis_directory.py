"""Spark finds the source ``mqis.directory`` by this module: nobody has to register it."""

from mqis.pipeline.sources.directory import DirectorySource as DefaultSource

__all__ = ["DefaultSource"]
