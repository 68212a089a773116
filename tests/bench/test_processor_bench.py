"""The processor benchmark: answers are checked, time is charged to the package that spends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench import calls, processor
from bench.load import LoadError
from bench.twins import Queue
from mqis.protocol.authentication import AuthLevel
from mqis.wire.mqds.propid import PropId
from tests.waiting import run

LEVELS = pytest.mark.parametrize("level", processor.LEVELS.values(), ids=list(processor.LEVELS))


@asynccontextmanager
async def clients(directory: Path, level: int) -> AsyncIterator[list[processor.Client]]:
    path = directory / "processor.db"
    processor.fill(path, 100)
    async with processor.serving(path, level) as served:
        yield served


@LEVELS
def test_every_operation_is_done_by_every_client(tmp_path: Path, level: int) -> None:
    async def main() -> None:
        async with clients(tmp_path, level) as served:
            for work in processor.works(100, level).values():
                assert await processor.together(served, work) > 0

    run(main())


def test_a_wrong_answer_is_an_error(tmp_path: Path) -> None:
    wrong = calls.get_props(Queue(7).path, [PropId.Q_LABEL], Queue(8).label)

    async def main() -> None:
        async with clients(tmp_path, AuthLevel.NONE) as served:
            with pytest.raises(LoadError, match="returned"):
                await processor.together(served, lambda peer: peer.call(wrong))
            await asyncio.sleep(0)

    run(main())


def test_built_in_functions_count_where_they_are_called() -> None:
    ours, theirs = ("/x/mqis/wire/ndr/a.py", 1, "f"), ("/x/mqis/protocol/b.py", 1, "g")
    length = ("~", 0, "len")
    stats = {
        ours: (1, 1, 3.0, 4.0, {}),
        theirs: (1, 1, 1.0, 5.0, {}),
        length: (6, 6, 4.0, 4.0, {ours: (3, 3, 3.0, 3.0), theirs: (3, 3, 1.0, 1.0)}),
    }
    assert processor.shares(stats) == {"wire/ndr": 0.75, "protocol": 0.25}
