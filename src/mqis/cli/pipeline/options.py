"""The options that the commands of the pipeline share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

TablesOption = Annotated[
    str,
    typer.Option(
        "--tables",
        "-t",
        metavar="DIRECTORY",
        help="The tables' directory. Default: tables, or tables in the directory of --run.",
        show_default=False,
    ),
]
PipelineRunOption = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIRECTORY",
        help="The run directory of 'mqis up': its tables, and its journals and directories as "
        "input.",
        show_default=False,
    ),
]
JournalsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Directories of journals, of any number of servers; separate several by commas.",
        show_default=False,
    ),
]
ExportsOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Exports, named SERVER.jsonl; separate several by commas.",
        show_default=False,
    ),
]
CapturesOption = Annotated[
    str,
    typer.Option(
        metavar="PATH",
        help="Captured traffic, pcap or pcapng; separate several by commas.",
        show_default=False,
    ),
]
RebuildOption = Annotated[
    bool,
    typer.Option("--rebuild", help="Read all files again, and keep nothing of earlier runs."),
]
MasterOption = Annotated[
    str,
    typer.Option(metavar="URL", help="The Spark master: local[*], spark://..., yarn or k8s://..."),
]
RemoteOption = Annotated[
    str,
    typer.Option(metavar="URL", help="A Spark Connect server, sc://...", show_default=False),
]
IntoOption = Annotated[
    str,
    typer.Option(
        metavar="CATALOG.SCHEMA",
        help="Keep the tables in a schema of a Spark catalogue instead of a directory.",
        show_default=False,
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="A setting of Spark, such as those of a catalogue; may be given several times.",
        show_default=False,
    ),
]
MemoryOption = Annotated[str, typer.Option(help="Memory for a local Spark.")]
TunedOption = Annotated[
    bool,
    typer.Option("--tuned/--untuned", help="Start a local Spark with settings for a quick start."),
]


UiOption = Annotated[
    bool,
    typer.Option(
        "--ui", help="Show the jobs of a local Spark in its own pages, on this computer only."
    ),
]

DEFAULT_TABLES = "tables"
#: Whoever may open the pages of Spark may not end its jobs there.
_SHOWN = {"spark.ui.enabled": "true", "spark.ui.killEnabled": "false"}


@dataclass(frozen=True)
class InputOptions:
    """The options that name what is read."""

    journals: JournalsOption = ""
    exports: ExportsOption = ""
    captures: CapturesOption = ""


@dataclass(frozen=True)
class TableOptions:
    """The options that select the tables and the Spark that computes them."""

    tables: TablesOption = ""
    run: PipelineRunOption = None
    master: MasterOption = "local[*]"
    remote: RemoteOption = ""
    memory: MemoryOption = "2g"
    tuned: TunedOption = True
    into: IntoOption = ""
    conf: ConfOption = None
    ui: UiOption = False

    @property
    def shown(self) -> str:
        """The place of the tables, for people."""
        return self.into or str(self.directory)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of ``--conf`` and ``--ui``; raises ``BadParameter`` if one is wrong."""
        if self.ui and (self.remote or not self.master.startswith("local")):
            raise typer.BadParameter("--ui is for a local Spark; a cluster has pages of its own")
        given = [text.partition("=") for text in self.conf or ()]
        for key, sign, _ in given:
            if not (key and sign):
                raise typer.BadParameter(f"--conf {key}: give KEY=VALUE")
        return (_SHOWN if self.ui else {}) | {key: value for key, _, value in given}

    @property
    def directory(self) -> Path:
        """The tables' directory; raises ``MqisError`` if it is none of this computer."""
        from mqis.pipeline.locations import local_path  # noqa: PLC0415

        if self.tables or self.run is None:
            return local_path(self.tables or DEFAULT_TABLES)
        return self.run / DEFAULT_TABLES
