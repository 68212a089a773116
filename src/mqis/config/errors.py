"""Errors of what an operator wrote, or left: configuration files and run directories."""

from __future__ import annotations

from mqis.wire.errors import MqisError


class ConfigError(MqisError, ValueError):
    """A configuration cannot be used; the message names the file, the key and the reason."""


class NodesError(MqisError):
    """A run directory cannot be used; the message says why and what to do."""
