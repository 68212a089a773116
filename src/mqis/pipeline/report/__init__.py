"""A report of the tables: one HTML file, which needs no network and no server."""

from mqis.pipeline.report.page import report

__all__ = ["report"]
