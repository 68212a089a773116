"""All tables of the pipeline. Importing this package fills ``registry.TABLES``."""

from mqis.pipeline.graph import (
    audit,
    bronze,
    conversations,
    directory,
    evidence,
    progress,
    routing,
    used,
)
from mqis.pipeline.graph.registry import TABLES, TableDefinition, TableKind

__all__ = [
    "TABLES",
    "TableDefinition",
    "TableKind",
    "audit",
    "bronze",
    "conversations",
    "directory",
    "evidence",
    "progress",
    "routing",
    "used",
]
