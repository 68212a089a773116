"""``mqis init``: the configuration to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mqis.cli.output import say
from mqis.services.config import DEFAULT_NAME, ConfigError, default_toml


def init(
    path: Annotated[Path, typer.Option(help="The file to write.")] = Path(DEFAULT_NAME),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a configuration in which every key is explained."""
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(default_toml())
    except FileExistsError:
        raise ConfigError(f"{path}: is there already; --force replaces it") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    say(f"wrote {path}; edit it, then 'mqis import FILE' fills the store")
