"""Spark finds the source ``mqis.segments`` by this module: nobody has to register it."""

from mqis.pipeline.sources.checks import SegmentSource as DefaultSource

__all__ = ["DefaultSource"]
