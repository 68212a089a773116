"""A layer imports only what its line names: import-linter contracts, made from one table."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from pkgutil import iter_modules

import mqis
import mqis.protocol

PACKAGE = Path(mqis.__file__).parent

# What each layer may import besides itself. Add a line before adding a package.
_BELOW = {
    "runtime",
    "storage",
    "places",
    "files",
    "extras",
    "protocol",
    "findings",
    "wire",
    "texts",
}
LAYERS: dict[str, set[str]] = {
    "texts": set(),
    "wire": {"texts"},
    "findings": {"wire"},
    "protocol": {"wire", "findings", "texts"},
    "pages": {"texts"},
    "files": set(),
    "extras": {"wire"},
    "places": {"files", "wire"},
    "runtime": {"wire", "protocol", "files", "texts"},
    "storage": {"wire", "findings", "protocol", "files", "places", "texts"},
    "sim": {"wire", "protocol", "storage", "texts"},
    "testing": {"wire", "protocol", "runtime"},
    "client": {"wire", "protocol", "files", "runtime", "texts"},
    "config": {"storage", "places", "files", "extras", "protocol", "wire", "texts"},
    "server": {"config"} | _BELOW,
    "admin": {"server", "config"} | _BELOW,
    "enterprise": {"admin", "server", "config"} | _BELOW,
    "views": {"pages", "enterprise", "server", "config"} | _BELOW,
    "lab": _BELOW,
    "web": {"views", "config", "client", "runtime", "files", "pages", "texts"},
    "pipeline": {"wire", "findings", "protocol", "files", "places", "pages", "texts"},
    "cli": {"web", "pipeline", "sim", "lab", "views", "enterprise", "admin", "server", "config"}
    | {"client"}
    | _BELOW,
    "__main__": {"cli"},
}

# Executors and small installations have no Spark, so these are imported where they are used.
LAZY_IN_CLI = "mqis.pipeline"


def layers_in(package: Path) -> set[str]:
    """The children of the root package, modules as well as packages."""
    files = (path.relative_to(package).with_suffix("") for path in package.rglob("*.py"))
    return {path.parts[0] for path in files} - {"__init__"}


def contracts(existing: Iterable[str]) -> str:
    """One contract a layer: none of the existing packages that its line leaves out.

    Only direct imports: a layer that names another gets what lies below that with it.
    """
    names = sorted(existing)
    lines = ["[importlinter]", "root_package = mqis"]
    for layer in names:
        forbidden = [n for n in names if n != layer and n not in LAYERS[layer]]
        if forbidden:
            lines += [
                f"[importlinter:contract:{layer}]",
                f"name = {layer}",
                "type = forbidden",
                "allow_indirect_imports = True",
                f"source_modules = mqis.{layer}",
                "forbidden_modules =",
                *(f"    mqis.{name}" for name in forbidden),
            ]
    return "\n".join(lines) + "\n"


def lint(directory: Path, package: Path) -> subprocess.CompletedProcess[str]:
    """import-linter over the ``mqis`` at ``package``, run in a process of its own."""
    config = directory / "contracts.ini"
    config.write_text(contracts(layers_in(package)), encoding="utf-8")
    command = "from importlinter.cli import lint_imports_command as main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, "--config", str(config), "--no-cache", "--no-logo"],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(package.parent), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def eager_imports(source: str) -> set[str]:
    """The modules that are imported as soon as this source is."""
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({node.module, *(f"{node.module}.{a.name}" for a in node.names)})
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))
    return found


def plant(directory: Path, imports: dict[str, set[str]]) -> Path:
    """A package tree named mqis in which each layer imports the named others."""
    package = directory / "mqis"
    for layer, others in imports.items():
        (package / layer / "inner").mkdir(parents=True)
        (package / layer / "__init__.py").touch()
        (package / layer / "inner" / "__init__.py").write_text(
            "".join(f"import mqis.{other}\n" for other in sorted(others)), encoding="utf-8"
        )
    (package / "__init__.py").touch()
    return package


def test_every_layer_imports_only_what_its_line_names(tmp_path: Path) -> None:
    result = lint(tmp_path, PACKAGE)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_package_has_a_line() -> None:
    assert layers_in(PACKAGE) <= LAYERS.keys()


def test_root_package_imports_no_layer() -> None:
    """Every import of a layer runs it, so whatever it imported would be in every layer."""
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert not {name for name in eager_imports(source) if name.startswith("mqis")}


def test_cli_imports_the_pipeline_only_where_it_is_used() -> None:
    for path in PACKAGE.glob("cli/**/*.py"):
        assert LAZY_IN_CLI not in eager_imports(path.read_text(encoding="utf-8")), path


def test_imports_that_the_lines_name_are_kept(tmp_path: Path) -> None:
    result = lint(tmp_path, plant(tmp_path, LAYERS))
    assert result.returncode == 0, result.stdout + result.stderr


def test_each_other_import_is_reported(tmp_path: Path) -> None:
    """All layers import all others: exactly the pairs outside the table are broken."""
    package = plant(tmp_path, {layer: LAYERS.keys() - {layer} for layer in LAYERS})
    result = lint(tmp_path, package)
    assert result.returncode == 1, result.stdout + result.stderr
    for layer, allowed in LAYERS.items():
        for other in LAYERS.keys() - {layer}:
            # import-linter's own sentence for a broken contract
            reported = f"mqis.{layer} is not allowed to import mqis.{other}:" in result.stdout
            assert reported == (other not in allowed), f"{layer} -> {other}: {result.stdout}"


def test_eager_imports() -> None:
    source = """
import a.b
from c import d
if True:
    import e
class K:
    import f
def late():
    import g
async def later():
    from h import i
"""
    assert eager_imports(source) == {"a.b", "c", "c.d", "e", "f"}


def test_the_index_of_protocol_has_every_room() -> None:
    """Its docstring is where a newcomer looks for a protocol first."""
    index = set(re.findall(r"``(\w+)``", mqis.protocol.__doc__ or ""))
    assert index == {name for _, name, _ in iter_modules(mqis.protocol.__path__)}
