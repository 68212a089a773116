"""The bounds on connections and addresses, for ``mqis.web``, which knows nothing below services."""

from mqis.runtime.crowd import Crowd
from mqis.runtime.peers import source_of

__all__ = ["Crowd", "source_of"]
