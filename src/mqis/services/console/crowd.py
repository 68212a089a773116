"""The bounds on connections, for ``mqis.web``, which knows nothing below the services."""

from mqis.runtime.crowd import Crowd

__all__ = ["Crowd"]
