"""No I/O, no clock, no randomness in the lowest layers: every syntax tree."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mqis

SOURCE = Path(mqis.__file__).parents[1]

# fmt: off
FORBIDDEN_MODULES = frozenset({
    "_thread", "asyncio", "concurrent", "ctypes", "http", "importlib", "io", "logging",
    "mmap", "multiprocessing", "os", "pathlib", "random", "secrets", "select",
    "selectors", "shutil", "signal", "socket", "socketserver", "sqlite3", "ssl",
    "subprocess", "tempfile", "threading", "time", "urllib",
})
# fmt: on
FORBIDDEN_BUILTINS = frozenset({"__import__", "breakpoint", "input", "open", "print"})
RANDOM_UUIDS = frozenset({"uuid1", "uuid4"})
CLOCK_CLASSES = frozenset({"date", "datetime"})
CLOCK_CALLS = frozenset({"now", "today", "utcnow"})

OWN_PACKAGES = {
    "mqis.texts": ("mqis.texts",),
    "mqis.wire": ("mqis.wire", "mqis.texts"),
    "mqis.findings": ("mqis.wire", "mqis.findings"),
    "mqis.protocol": ("mqis.wire", "mqis.findings", "mqis.texts", "mqis.protocol"),
}
# Bulk shortest paths are the one calculation that wants arrays.
ARRAYS = frozenset({"numpy", "scipy"})
ARRAYS_IN = "mqis.protocol.routing"


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def imported_modules(node: ast.AST, package: str) -> Iterator[str]:
    """Absolute names; what is taken from the root package is a layer, so that is named too."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parents, *([base] if base else [])])
        if base != "mqis":
            yield base
        else:
            yield from (f"mqis.{alias.name}" for alias in node.names)


def import_problem(imported: str, module: str, layer: str) -> str | None:
    top = imported.partition(".")[0]
    if top == "mqis":
        allowed = any(inside(imported, package) for package in OWN_PACKAGES[layer])
    elif top in ARRAYS:
        allowed = inside(module, ARRAYS_IN)
    else:
        allowed = top in sys.stdlib_module_names and top not in FORBIDDEN_MODULES
    return None if allowed else f"imports {imported}"


def clock_names(tree: ast.AST) -> set[str]:
    """The names under which the classes that know the time are known here."""
    return set(CLOCK_CLASSES) | {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "datetime"
        for alias in node.names
        if alias.asname and alias.name in CLOCK_CLASSES
    }


def use_problem(node: ast.AST, clocks: set[str]) -> str | None:
    match node:
        case ast.Name(id=name) if name in FORBIDDEN_BUILTINS:
            return f"uses {name}"
        case ast.Attribute(attr=name) | ast.alias(name=name) if name in RANDOM_UUIDS:
            return f"uses {name}"
        case ast.Attribute(attr=call, value=ast.Name(id=owner) | ast.Attribute(attr=owner)) if (
            call in CLOCK_CALLS and owner in clocks
        ):
            return f"uses {owner}.{call}"
    return None


def problems(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """The constructs in ``source`` that are not allowed in ``module``, with their lines."""
    layer = ".".join(module.split(".")[:2])
    package = module if is_package else module.rpartition(".")[0]
    tree = ast.parse(source)
    clocks = clock_names(tree)
    found = []
    for node in ast.walk(tree):
        imports = imported_modules(node, package)
        reasons = [import_problem(imported, module, layer) for imported in imports]
        line = getattr(node, "lineno", 0)
        found += [f"{line}: {r}" for r in [*reasons, use_problem(node, clocks)] if r]
    return found


def pure_modules() -> list[tuple[str, Path]]:
    """Dotted name and file of every module of these layers; one of them is a module itself."""
    found = []
    for layer in OWN_PACKAGES:
        place = SOURCE / Path(*layer.split("."))
        for path in sorted([*place.rglob("*.py"), *place.parent.glob(f"{place.name}.py")]):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            found.append((".".join(parts).removesuffix(".__init__"), path))
    return found


MODULES = pure_modules()


@pytest.mark.parametrize(("module", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_module_is_pure(module: str, path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert problems(source, module, is_package=path.name == "__init__.py") == []


def test_all_layers_are_looked_at() -> None:
    names = {name for name, _ in MODULES}
    assert {"mqis.texts", "mqis.wire.reader", "mqis.findings", "mqis.protocol"} <= names


@pytest.mark.parametrize("forbidden", sorted(FORBIDDEN_MODULES))
@pytest.mark.parametrize("form", ["import {}", "import {}.x as y", "from {} import x"])
@pytest.mark.parametrize("module", ["mqis.wire.m", "mqis.protocol.m"])
def test_forbidden_module_is_found(module: str, form: str, forbidden: str) -> None:
    source = f"def late():\n    {form.format(forbidden)}"
    assert len(problems(source, module)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "open('x')",
        "read = open",
        "print(1)",
        "input()",
        "__import__('os')",
        "breakpoint()",
        "import uuid\nuuid.uuid4()",
        "import uuid\nuuid.uuid1()",
        "from uuid import uuid4",
        "from uuid import uuid1 as make",
        "import datetime\ndatetime.datetime.now()",
        "import datetime as d\nd.datetime.utcnow()",
        "from datetime import datetime\ndatetime.now(None)",
        "from datetime import datetime as dt\ndt.today()",
        "from datetime import date\ndate.today()",
        "import numpy",
        "from scipy.sparse import csgraph",
        "import cryptography",
        "import mqis.runtime",
        "from mqis import storage",
        "from mqis.config.file import Config",
        "from ..runtime import x",
        "from .. import runtime",
    ],
)
@pytest.mark.parametrize("module", ["mqis.wire.m", "mqis.protocol.m"])
def test_forbidden_use_is_found(module: str, source: str) -> None:
    assert len(problems(source, module)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "import sys, struct, hashlib, uuid",
        "from __future__ import annotations",
        "from datetime import datetime, time, timedelta\ndatetime.fromtimestamp(0, None)",
        "uuid.UUID(bytes=b'')",
        "self.open()\nlog.print()",
        "now = clock.now()\nclock.today",
        "def open_connection(now): ...",
        "from mqis.wire.reader import Reader",
        "from mqis import wire",
        "from . import sibling",
        "from .sibling import name",
    ],
)
@pytest.mark.parametrize("module", ["mqis.wire.m", "mqis.protocol.m"])
def test_allowed_use_is_not_reported(module: str, source: str) -> None:
    assert problems(source, module) == []


def test_wire_does_not_import_protocol() -> None:
    source = "from mqis.protocol.ports import Store"
    assert problems(source, "mqis.wire.m") == ["1: imports mqis.protocol.ports"]
    assert problems(source, "mqis.protocol.m") == []


@pytest.mark.parametrize("package", sorted(ARRAYS))
def test_arrays_only_in_routing(package: str) -> None:
    source = f"import {package}"
    assert problems(source, "mqis.protocol.routing.bulk") == []
    assert problems(source, "mqis.protocol.routing", is_package=True) == []
    assert problems(source, "mqis.protocol.routing_tables") != []
    assert problems(source, "mqis.wire.routing") != []


def test_relative_import_counts_from_the_package_itself() -> None:
    source = "from . import sibling"
    assert problems(source, "mqis.wire", is_package=True) == []
    assert problems("from .. import runtime", "mqis.wire.rpc", is_package=True) == []
    assert problems("from ... import runtime", "mqis.wire.rpc", is_package=True) != []
