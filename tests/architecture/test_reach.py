"""Everything in mqis is reached by something that ships, and the gate for that can fail."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tools.reach import ALLOWED, Reach, judge, reach_of_mqis
from tools.references import read_references

MODULES = {
    "made.__init__": "",
    "made.start": """
        from made import parts
        from made.parts import Base, Heir, Left, Port, Right, helper, registered

        def main(port: Port, left: Left, unknown: object) -> None:
            helper()
            left.same()
            port.send()
            base: Base = Heir()
            base.step()
            print(parts.USED, registered, Right(), getattr(unknown, "by_name"))
        """,
    "made.parts": """
        from __future__ import annotations
        import asyncio
        from typing import Protocol

        USED = 1
        ONLY_IN_UNUSED = 2
        TABLE = {"a": 1}

        def helper() -> None: ...
        def registered() -> None: ...
        def unused() -> int:
            return ONLY_IN_UNUSED
        def itself(times: int) -> int:
            return itself(times - 1)
        def first() -> None:
            second()
        def second() -> None:
            first()

        class Left:
            def same(self) -> None: ...
        class Right:
            def same(self) -> None: ...
            def by_name(self) -> None: ...
            def __repr__(self) -> str:
                return self._shown()
            def _shown(self) -> str:
                return ""

        class Port(Protocol):
            def send(self) -> None: ...
            def never_called(self) -> None: ...
        class Socket:
            def send(self) -> None: ...
            def never_called(self) -> None: ...

        class Base:
            def step(self) -> None: ...
            def other(self) -> None: ...
        class Heir(Base):
            def step(self) -> None:
                self.state = Socket()
            def other(self) -> None: ...

        class Speaker(asyncio.Protocol):
            def data_received(self, data: bytes) -> None: ...
            def own(self) -> None: ...
        SPEAKER = Speaker
        class NeverMade:
            def method(self) -> None: ...
        def takes(value: NeverMade) -> None: ...
        """,
    "made.forgotten": "def alone() -> None: ...",
}
ROOTS = ("made.start.main", "made.parts.SPEAKER", "made.parts.takes")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What mypy knows of other packages, for all packages that are made here."""
    return tmp_path_factory.mktemp("cache")


def judged(directory: Path, kept: Path, allowed: tuple[str, ...] = ()) -> Reach:
    for name, text in MODULES.items():
        path = directory / Path(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    return judge(read_references(directory, kept), ROOTS, allowed)


@pytest.fixture(scope="module")
def result() -> Reach:
    return reach_of_mqis()


def test_everything_in_mqis_is_reached(result: Reach) -> None:
    assert not result.outermost, "only tests reach it: remove it, connect it, or allow it"
    assert not result.needless, "reached anyway, or not there: remove it from the list"


def test_each_allowance_has_a_reason() -> None:
    assert all(reason.strip() for reason in ALLOWED.values())


def test_attributes_without_a_type_are_few(result: Reach) -> None:
    """By its bare name an attribute reaches too much."""
    assert len(result.unresolved) < 0.01 * result.resolved


def test_what_nothing_reaches_is_found(tmp_path: Path, kept: Path) -> None:
    assert set(judged(tmp_path, kept).outermost) == {
        # nothing mentions it
        "made.parts.TABLE",
        "made.parts.unused",
        # only the function above does
        "made.parts.ONLY_IN_UNUSED",
        # they mention themselves and each other
        "made.parts.itself",
        "made.parts.first",
        "made.parts.second",
        # another class has a method of that name, which is called
        "made.parts.Right.same",
        # neither the port's method is called nor one that fulfils or overrides it
        "made.parts.Port.never_called",
        "made.parts.Socket.never_called",
        "made.parts.Base.other",
        "made.parts.Heir.other",
        "made.parts.Speaker.own",
        # an annotation makes no object
        "made.parts.NeverMade",
        # a module that nothing imports, with what it defines
        "made.forgotten",
    }


def test_tests_do_not_count(tmp_path: Path, kept: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_parts.py").write_text(
        "from made.parts import unused\nunused()\n", encoding="utf-8"
    )
    assert "made.parts.unused" in judged(tmp_path, kept).unreachable


def test_allowances(tmp_path: Path, kept: Path) -> None:
    allowed = ("made.parts.unused", "made.parts.Heir", "made.parts.helper", "made.parts.gone")
    result = judged(tmp_path, kept, allowed)
    assert result.needless == ("made.parts.helper", "made.parts.gone")
    assert not result.unreachable.keys() & {
        "made.parts.unused",
        "made.parts.ONLY_IN_UNUSED",  # with what it needs
        "made.parts.Heir.other",  # a class with its public members
    }
    assert "made.parts.itself" in result.unreachable
