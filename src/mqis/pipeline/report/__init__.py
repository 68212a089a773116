"""One HTML file that shows what the tables say; it needs no network and no server."""

from mqis.pipeline.report.page import report

__all__ = ["report"]
