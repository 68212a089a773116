"""``mqis pipeline``: analyses journals, exports and captures with Spark."""

from mqis.cli.pipeline.commands import app
from mqis.wire.errors import MqisError

__all__ = ["MqisError", "app"]
