"""One place for each job: what must be done in one way is done nowhere else."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import mqis

PACKAGE = Path(mqis.__file__).parent
#: These write a file in place: a crash leaves half of it, and everybody may read it.
_IN_PLACE = frozenset({"write_text", "write_bytes"})
#: Files that are nobody's: what a simulation or a generator spoils, and a browser's input.
_MAY_WRITE_IN_PLACE = frozenset({
    "lab/generate/generated_exports.py",
    "lab/generate/generate.py",
    "lab/generate/spoiling.py",
    "lab/generate/filefaults.py",
    "pipeline/printing.py",
    "sim/archive/archive_world.py",
})  # fmt: skip


def calls(path: Path) -> Iterator[str]:
    """The names of the methods and functions that a module calls."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr


def test_files_are_written_whole() -> None:
    """``mqis.files`` does it; an exception that is needless fails too."""
    writers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if _IN_PLACE & set(calls(path))
    }
    assert writers == _MAY_WRITE_IN_PLACE


#: Modules that make files by the system's own call, and why.
_MAKING = {
    "admin/backup/backup_file.py": "a draft that taking and restoring give their places",
    "config/processlocks.py": "a lock",
    "files.py": "the place",
    "sim/archive/disk.py": "a simulated disk",
    "storage/journal/journal.py": "a lock, and a segment, which grows",
    "storage/sqlite.py": "an empty file, for SQLite to fill",
    "web/serving.py": "a token for the time of one process; a link that lies there is not followed",
}


def test_files_are_made_in_one_place() -> None:
    makers = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "O_CREAT" in path.read_text("utf-8")
    }
    assert makers == _MAKING.keys()


#: Modules that remove or rename directories and files themselves, and why.
_RENAMING = {
    "admin/backup/restoring_backup.py": "exchanges several files, all or none",
    "admin/backup/taking_backup.py": "a name that came to be taken meanwhile is not replaced",
    "client/events.py": "a table in memory, no file",
    "cli/tour/live.py": "removes an earlier tour",
    "enterprise/control.py": "a temporary directory, for a path that is too long for a socket",
    "enterprise/first_server.py": "a store, which SQLite has flushed",
    "enterprise/launch.py": "keeps the directory of a server that was taken out",
    "enterprise/supervisor.py": "keeps the log of the start before",
    "files.py": "the place",
    "pipeline/layers.py": "a draft of Spark, from which a version of a table is put together",
    "pipeline/streaming.py": "what an earlier version kept of records, once it is taken over",
    "pipeline/tables.py": "a version that failed",
    "places/remote.py": "a store of objects",
    "places/pipeline_tables.py": "versions of tables, and the link to the current one",
    "sim/archive/disk.py": "a simulated disk",
    "sim/archive/archive_world.py": "a simulated disk",
    "storage/journal/journal.py": "a segment, which grows after it has its name",
}


def renames(node: ast.AST) -> bool:
    """Returns whether a directory or a file gets its place, or loses it."""
    match node:
        case ast.Call(func=ast.Attribute(attr="rename" | "rmtree" | "move")):
            return True
        case ast.Call(func=ast.Name(id="rmtree")):
            return True
        case ast.Call(func=ast.Attribute(attr="replace"), args=[_], keywords=[]):
            return True
    return False


def test_directories_are_written_whole() -> None:
    """``mqis.files`` does it; an exception that is needless fails too."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(map(renames, ast.walk(ast.parse(path.read_text("utf-8")))))
    }
    assert found == _RENAMING.keys()


def doubles(node: ast.AST) -> bool:
    """Returns whether a pause is doubled up to a limit: ``min`` of a number and twice another."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "min"):
        return False
    for each in ast.walk(node):
        match each:
            case ast.BinOp(left=ast.Constant(value=2 | 2.0), op=ast.Mult() | ast.Pow()):
                return True
            case ast.BinOp(op=ast.Mult(), right=ast.Constant(value=2 | 2.0)):
                return True
            case ast.BinOp(left=ast.Constant(value=1), op=ast.LShift()):
                return True
    return False


def test_pauses_are_doubled_in_one_place() -> None:
    """``mqis.protocol.clock`` does it."""
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if any(map(doubles, ast.walk(ast.parse(path.read_text("utf-8")))))
    }
    sizes = {"sim/runner.py", "wire/reader.py"}
    assert found - sizes == {"protocol/clock.py"}


def test_whoever_repeats_with_growing_pauses_is_told() -> None:
    """State machines do it; docs/architecture.md names all others."""
    text = (PACKAGE.parents[1] / "docs/architecture.md").read_text("utf-8")
    told = text.partition("## Where do I put a retry?")[2].partition("\n## ")[0]
    found = {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if "pause_after(" in path.read_text("utf-8")
    }
    outside = {name for name in found if not name.startswith("protocol/")}
    assert {name for name in outside if f"`{name}`" not in told} == set()
    assert outside, "the search finds what it is about"


#: Matches an element of a page or a picture.
_ELEMENTS = "a|circle|div|g|h1|h2|html|li|p|path|rect|span|svg|t[dhr]|table|text"
_MARKUP = re.compile(rf"</?({_ELEMENTS})\b[^<]*>")


def texts_in(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, without its docstrings."""
    told = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def test_pages_and_pictures_are_templates() -> None:
    """jinja2 escapes everything in them; ``mqis.pages`` has the only engine, and draws."""
    markup, engines = set(), set()
    for path in PACKAGE.rglob("*.py"):
        name, tree = str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))
        markup |= {name for text in texts_in(tree) if _MARKUP.search(text)}
        imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
        engines |= {name for each in imports if each.module in {"html", "jinja2", "markupsafe"}}
    assert markup == set()
    assert engines == {"pages/__init__.py"}
    drawn = {p.name for p in PACKAGE.glob("web/templates/**/*.html") if "<svg" in p.read_text()}
    assert drawn == {"base.html"}, "the logo"


#: Matches a colour; those of a page stand in its palette, in variables.
_COLOUR = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b|\brgba?\([^v]")
_VARIABLES = re.compile(r"--[\w-]+:[^;}]*")
#: They are read by programs that know no variables, and the colours of lines are a sequence.
_OWN_COLOURS = {"web/static/icon.svg", "pages/templates/map.css", "pages/charts.py"}


def test_colours_stand_in_palettes() -> None:
    found = set()
    for pattern in ("**/*.css", "**/*.html", "**/*.svg", "**/*.py"):
        for path in PACKAGE.glob(pattern):
            text = path.read_text("utf-8")
            if path.suffix == ".py":
                text = "".join(each for each in texts_in(ast.parse(text)) if len(each) == 7)
            if _COLOUR.search(_VARIABLES.sub("", text)):
                found.add(str(path.relative_to(PACKAGE)))
    assert found == _OWN_COLOURS


#: Matches the format of a moment, and of a time with its unit.
_MOMENT = re.compile(r"%[HYBb]")
_AMOUNT = re.compile(r"^,?\.\df$")
_UNIT = re.compile(r"^ (ms|s|seconds|min|minutes|h|hours|d|days|[KMG]i?B)\b")
#: Matches what follows a number with its noun. Exact bytes and characters are no prose, and a word
#: of capitals is a limit, which is never one.
_NOUN = re.compile(r"^ ([a-z]+ )?(?!bytes|octets|characters)[a-z]+s\b")
_LIMIT = re.compile(r"\b_?[A-Z][A-Z_]+\b")
#: Formats that programs read or a simulation compares: (module, function or class) or all of it.
_OWN_SPELLINGS = frozenset({
    "protocol/activedirectory/codecs.py",
    "sim/world.py",
    "texts.py",
    "views/presentation/periods.py",
})  # fmt: skip


def spellings(tree: ast.AST) -> Iterator[str]:
    """Values that are put into words by hand: ``mqis.texts`` does that."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="strftime" | "strptime" | "fromisoformat" as name):
                yield name
            case ast.IfExp(
                test=ast.Compare(
                    ops=[ast.Eq() | ast.NotEq() | ast.Gt()], comparators=[ast.Constant(value=1)]
                ),
                body=ast.Constant(value=str()) | ast.JoinedStr(),
                orelse=ast.Constant(value=str()) | ast.JoinedStr(),
            ):
                yield "a plural"
            case ast.BoolOp(values=[*_, ast.BinOp(right=ast.Constant(value="s"), op=ast.Add())]):
                yield "a plural"
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(separator)), attr="join"), args=[of]
            ):
                cut = re.search(r"\[:\d+\]$", ast.unparse(of))
                if separator == " and " or (cut and separator in {", ", "; "}):
                    yield "a list"
            case ast.JoinedStr(values=parts):
                yield from _in_text(parts)


def _in_text(parts: list[ast.expr]) -> Iterator[str]:
    for before, part, after in zip([None, *parts], parts, [*parts[1:], None], strict=False):
        if not isinstance(part, ast.FormattedValue):
            continue
        spec = ast.walk(part.format_spec) if part.format_spec else ()
        form = "".join(str(each.value) for each in spec if isinstance(each, ast.Constant))
        left = before.value if isinstance(before, ast.Constant) else ""
        right = after.value if isinstance(after, ast.Constant) else ""
        if _MOMENT.search(form):
            yield "a moment"
        if _AMOUNT.match(form) and _UNIT.match(str(right)):
            yield "a duration or size"
        value = ast.unparse(part.value)
        if left == ":" and "port" in value:
            yield "a host with its port"
        if re.search(r"\[:.*\]$", value) and str(right).startswith(("…", "...")) and not form:
            yield "a text that is cut off"
        plural = _NOUN.match(str(right)) and not str(right).startswith((" is ", " was ", " has "))
        numeric = form.startswith(",") or value.startswith("len(")
        if plural and numeric and not _LIMIT.search(value):
            yield "a plural"
        if form == "g" and _UNIT.match(str(right)):
            yield "a duration"
        if str(left).endswith("and ") and re.match(r" more\b", str(right)):
            yield "a list that is cut off"


def test_values_are_spelt_in_one_place() -> None:
    """``mqis.texts`` has them; an exception that is needless fails too."""
    found = {
        str(path.relative_to(PACKAGE)): held
        for path in PACKAGE.rglob("*.py")
        if (held := list(spellings(ast.parse(path.read_text("utf-8")))))
    }
    assert {place: held for place, held in found.items() if place not in _OWN_SPELLINGS} == {}
    assert found.keys() == _OWN_SPELLINGS


#: Where the words of the system are: of files, of sockets, and of an error that nobody expected.
_SYSTEMS_WORDS = {"files.py", "runtime/peers.py", "cli/failures.py"}


def test_the_words_of_the_system_come_from_one_place() -> None:
    """An error without them, or with several, would print "None" or its number."""
    own = re.compile(r"(?<!os)\.strerror\b|[\"']strerror[\"']")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if own.search(path.read_text("utf-8"))
    }
    assert found == _SYSTEMS_WORDS


def test_pages_spell_no_values() -> None:
    """Templates have the functions of ``mqis.texts`` as filters and globals."""
    by_hand = re.compile(r"\{\{ ?\"s\b|[!=]= 1 (else|%|\})|and \{\{[^}]*\}\} more\b")
    pages = PACKAGE.rglob("*.html")
    assert [str(path) for path in pages if by_hand.search(path.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    [
        "at.strftime('%H:%M')",
        "datetime.fromisoformat(text)",
        'f\'{number} {"queue" if number == 1 else "queues"}\'',
        "word = 'queue' if number == 1 else f'{number} queues'",
        "text = f'{number} {plural or noun + \"s\"}'",
        "f'{at:%Y-%m-%d}'",
        "f'after {took:.1f} s'",
        "f'{free / 1024:,.0f} MB free'",
        "f'{shown} and {rest:,} more'",
        "f'within {limit:g} s'",
        "f'{len(accounts)} accounts'",
        "f'{left:,} other servers'",
        "' and '.join(names)",
        "', '.join(names[:3])",
        "f'{host}:{section.port}'",
        "f'{text[:MOST]}...'",
    ],
)
def test_a_value_that_is_spelt_by_hand_is_found(source: str) -> None:
    assert len(list(spellings(ast.parse(source)))) == 1


_MOST_ERRORS = 67
#: Errors that only callers of the library handle, and the page that tells them.
_FOR_CALLERS = {
    "ConnectionDenied": "docs/oletx.md",
    "SessionError": "docs/oletx.md",
}
#: The only other one: a line of a file, which fuzzing proves to be a ``WireError``.
_UNHANDLED = {"LdifError"}


@cache
def _trees() -> tuple[ast.Module, ...]:
    return tuple(ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py"))


@cache
def _bases() -> dict[str, set[str]]:
    """The names of the bases of each class."""
    return {
        node.name: {name.split(".")[-1] for name in map(ast.unparse, node.bases)}
        for tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }


def _above(name: str) -> set[str]:
    found = _bases().get(name, set())
    return found.union(*map(_above, found))


def _errors() -> set[str]:
    """The classes that derive from an exception, over any number of steps."""
    bases = _bases()
    known = {name for name, kind in vars(builtins).items() if isinstance(kind, type)}
    known = {name for name in known if issubclass(getattr(builtins, name), BaseException)}
    found: set[str] = set()
    while more := {n for n, above in bases.items() if above & (known | found)} - found:
        found |= more
    return found


def _handled() -> set[str]:
    """The names in ``except``, and in calls that ask for a type.

    A name beside one of its bases does not count: all of them are treated alike there.
    """
    found: set[str] = set()
    for tree in _trees():
        for node in ast.walk(tree):
            named: ast.AST | None = node.type if isinstance(node, ast.ExceptHandler) else None
            asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if asks and node.func.id in {"isinstance", "issubclass", "suppress"}:  # type: ignore[attr-defined]
                named = node
            if named is not None:
                within = list(ast.walk(named))
                names = {each.id for each in within if isinstance(each, ast.Name)}
                names |= {each.attr for each in within if isinstance(each, ast.Attribute)}
                found |= {name for name in names if not _above(name) & names}
    return found


def test_an_error_has_a_class_of_its_own_if_somebody_handles_it() -> None:
    """Every other is an ``MqisError`` (or the error of its layer) with a text for a person."""
    assert _errors() - _handled() == _UNHANDLED | _FOR_CALLERS.keys()
    assert len(_errors()) <= _MOST_ERRORS, "what does the caller of a new one do differently?"


def test_errors_for_callers_are_told() -> None:
    for name, page in _FOR_CALLERS.items():
        assert f"`{name}`" in (PACKAGE.parents[1] / page).read_text("utf-8")


#: The words of scales of gravity; a second scale would have two of them.
_GRAVE = frozenset({
    "ACT", "AMBER", "CRITICAL", "ERROR", "FATAL", "FINE", "GREEN", "INFO", "LOOK", "NOTE", "NOTICE",
    "OK", "RED", "SEVERE", "WARNING",
})  # fmt: skip


def _members(node: ast.ClassDef) -> set[str]:
    targets = [each.targets[0] for each in node.body if isinstance(each, ast.Assign)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_a_fault_has_one_type_and_one_scale() -> None:
    """``mqis.findings`` has both; every check yields its ``Finding``."""
    classes = [n for tree in _trees() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    assert [n.name for n in classes if n.name.endswith(("Finding", "Note"))] == ["Finding"]
    scales = {n.name for n in classes if len(_members(n) & _GRAVE) > 1}
    assert scales == {"Gravity", "LogLevel"}, "log lines have the levels of Python's logging"
