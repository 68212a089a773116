"""Spark finds the source ``mqis.capture`` by this module: nobody has to register it."""

from mqis.pipeline.sources.capture import CaptureSource as DefaultSource

__all__ = ["DefaultSource"]
