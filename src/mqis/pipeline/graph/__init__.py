"""All tables of the pipeline: importing this package fills ``TABLES``.

Most are defined beside their transforms; the modules here put several transforms together.
"""

# ruff: noqa: F401 - modules are imported for the tables that they define
from mqis.pipeline.graph import bronze, directory, evidence, routing, used
from mqis.pipeline.registry import TABLES, TableDefinition, TableKind
from mqis.pipeline.transforms import (
    causes,
    current,
    divergence,
    history,
    network,
    progress,
    records,
    routes,
    second_look,
)

__all__ = ["TABLES", "TableDefinition", "TableKind"]
