"""The demonstration enterprise in a file, made once: commands here only read it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mqis.config.stores import open_store
from mqis.lab import demo


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    with closing(open_store(str(path), create=True)) as store:
        demo.build(store)
    return path
