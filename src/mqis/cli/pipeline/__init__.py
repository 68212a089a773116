"""``mqis pipeline``: analyses journals, exports and captures with Spark."""

from mqis.cli.pipeline.commands import app
from mqis.cli.pipeline.opening import NoSparkError

__all__ = ["NoSparkError", "app"]
