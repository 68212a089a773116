"""Optional parts of an installation: what takes large libraries is an extra of the package."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from mqis.wire.errors import MqisError


@dataclass(frozen=True, slots=True)
class Extra:
    """One extra, as in ``pip install 'mqis[graphs]'``."""

    name: str
    #: A library that belongs to it.
    module: str

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None

    @property
    def command(self) -> str:
        return f"pip install 'mqis[{self.name}]'"

    def require(self, purpose: str) -> None:
        """Raises ``MqisError`` if the extra is not installed."""
        if not self.installed:
            raise MqisError(f"{purpose} needs the extra mqis[{self.name}]: {self.command}")


#: Routes of all sites at once, what-if, and maps of many sites.
GRAPHS: Final = Extra("graphs", "scipy")
#: Stores in PostgreSQL.
POSTGRES: Final = Extra("postgres", "psycopg")
#: Spark.
PIPELINE: Final = Extra("pipeline", "pyspark")
