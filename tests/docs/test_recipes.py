"""The recipes of CONTRIBUTING.md, performed on a copy: they are complete, and name every file.

Each recipe edits a copy of the sources as its list says, then one process uses what was added, the
way a user does. Files that had to change and that the recipe does not name are a failure: then the
recipe is wrong, or the design is.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.documents import ROOT

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that is put before another one; into a new file if there is no other."""

    path: str
    added: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    #: The heading of its list.
    heading: str
    edits: tuple[Edit, ...]
    #: Python that uses what was added, in the directory of the copy; ``mqis(...)`` runs a command.
    use: str


PROPERTY = Recipe(
    "A property",
    (
        Edit(
            "docs/spec/mqds-properties.csv",
            "313,PROPID_S_RECIPE,MQDS_SITE,VT_UI4,Recipe,y,y,y,7,copy,copy,update rule,,2.3.3.13\n"
            "314,PROPID_S_LOCAL,MQDS_SITE,VT_UI4,Local,y,y,y,8,copy,copy,update rule,,2.3.3.14\n",
            "401,",
        ),
        Edit(
            "src/mqis/protocol/directory/types/site.py",
            "    PropertyRow(P.S_RECIPE, APPLY, APPLY, Takes.NOTHING, default=7, replicated=8,\n"
            '        ldap=Ldap("mSMQRecipe", AttributeSyntax.UNSIGNED, ALL, 7)),\n'
            "    PropertyRow(P.S_LOCAL, APPLY, APPLY, Takes.NOTHING, default=8),\n",
            "    # It reads as zero, and that a write",
        ),
    ),
    """
import runpy
sys.argv = ["tools/generate_catalogue.py"]
try:
    runpy.run_path("tools/generate_catalogue.py", run_name="__main__")
except SystemExit as end:
    assert not end.code
from mqis.protocol.activedirectory.reading import columns_of, kept_of
from mqis.protocol.activedirectory.rows import ATTRIBUTE_ROWS
from mqis.protocol.directory.export_format import format_entry, parse_entry
from mqis.protocol.directory.local_events import DirectoryEvents
from mqis.protocol.replication.replicated import content
from mqis.runtime.entropy import SystemEntropy
from mqis.storage.sqlite import SqliteStore
from mqis.wire.mqds.objecttype import ObjectType
from mqis.wire.mqds.propid import PropId
from mqis.wire.mqds.catalogue import props
store = SqliteStore("directory.db")
with store.write() as tx:
    events = DirectoryEvents(tx, 0, SystemEntropy())
    site = events.create(ObjectType.SITE, "Delft", props({PropId.S_RECIPE: 4711}))
assert (site.value(PropId.S_RECIPE), site.value(PropId.S_LOCAL)) == (4711, 8)
assert parse_entry(format_entry(site), 1) == site
assert PropId.S_RECIPE in content(site)
# What an Active Directory keeps is asked for; what it does not keep is not an error.
wanted = kept_of(ObjectType.SITE)
assert {PropId.S_RECIPE, PropId.S_LOCAL} <= set(wanted)
assert "mSMQRecipe" in columns_of(wanted)[0]
assert ATTRIBUTE_ROWS[PropId.S_RECIPE].absent == 7
store.close()
shown = mqis("lookup", "site", "--store", "directory.db", "--columns", "S_PATHNAME,S_RECIPE")
assert "4711" in shown, shown
""",
)

MESSAGE = Recipe(
    "A replication message",
    (
        Edit("src/mqis/wire/mqdsrp/messages.py", "    RECIPE = 8\n", "\n\nclass Sync0(IntEnum)"),
        Edit(
            "src/mqis/wire/mqdsrp/messages.py",
            '''# 18 16 MachineID
@dataclass(frozen=True, slots=True)
class Recipe:
    """A message of a recipe."""

    site: Guid
    machine: Guid

    OPERATION: ClassVar[MessageOperation] = MessageOperation.RECIPE

    @classmethod
    def decode_body(cls, site: Guid, reader: Reader) -> Recipe:
        return cls(site, reader.guid())

    def encode_body(self, writer: Writer) -> None:
        writer.guid(self.machine)


''',
            "Message = (\n",
        ),
        Edit("src/mqis/wire/mqdsrp/messages.py", "    | Recipe\n", ")\n\n#: Decoders of message"),
        Edit(
            "src/mqis/protocol/replication/acknowledging.py",
            "def receive_recipe(work: Work, sender: Sender, message: object) -> None:\n"
            "    work.append((sender, message))  # type: ignore[attr-defined]\n\n\n",
            "def receive_bsc_ack(",
        ),
        Edit(
            "src/mqis/protocol/replication/machine.py",
            "        case Recipe():\n"
            "            acknowledging.receive_recipe(work, sender, message)\n",
            "        case _:  # so that the type checker",
        ),
        Edit("src/mqis/protocol/replication/machine.py", "    Recipe,\n", "    SyncReply,\n"),
    ),
    """
from mqis.protocol.replication import machine
from mqis.wire.guid import Guid
from mqis.wire.mqdsrp.messages import Recipe, decode_message, encode_message
made = Recipe(Guid(bytes(range(16))), Guid(bytes(range(16, 32))))
data = encode_message(made)
assert decode_message(data) == made
heard = []
machine._dispatch(heard, "PSC1", made)
assert heard == [("PSC1", made)]
assert "13121110-1514-1716-1819-1a1b1c1d1e1f" in mqis("decode", "--protocol", "mqdsrp", data.hex())
""",
)

DECODER = Recipe(
    "A decoder",
    (
        Edit(
            "src/mqis/wire/recipe.py",
            '''"""A structure of a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from mqis.wire.reader import Reader


@dataclass(frozen=True, slots=True)
class Recipe:
    number: int


def decode_recipe(data: bytes) -> Recipe:
    reader = Reader(data)
    found = Recipe(reader.u32())
    reader.expect_end("Recipe")
    return found
''',
        ),
        Edit(
            "src/mqis/wire/decoders.py",
            '    NamedDecoder("recipe", "a structure of a recipe", decode_recipe),\n',
            '    NamedDecoder("sid", ',
        ),
        Edit(
            "src/mqis/wire/decoders.py",
            "from mqis.wire.recipe import decode_recipe\n",
            "from mqis.wire.rpc.pdu_bodies import",
        ),
    ),
    """
assert "513" in mqis("decode", "--protocol", "recipe", "01020000")
assert "recipe" in mqis("decode", "--help")
""",
)

HEALTH_CHECK = Recipe(
    "A health check",
    (
        Edit(
            "src/mqis/views/doctor/port_checks.py",
            "def _recipe(patient: Patient) -> Iterator[Finding]:\n"
            '    """A check of a recipe."""\n'
            "    if patient.config.rpc.port == 4321:\n"
            '        yield _PORTS.warning("4321 is a port of a recipe", "choose another")\n'
            "\n\n",
            "def check(patient: Patient)",
        ),
        Edit(
            "src/mqis/views/doctor/port_checks.py",
            "    yield from _recipe(patient)\n",
            "\n\ndef _finding(patient",
        ),
        Edit("docs/operations.md", "A port of a recipe is not used. ", "`mqis up` creates links"),
    ),
    """
mqis("init", "--path", "mqis.toml")
text = open("mqis.toml", encoding="utf-8").read()
for port, told in ((4321, True), (4322, False)):
    with open("mqis.toml", "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?ms)(^\\[rpc\\].*?^port = )[0-9]+", rf"\\g<1>{port}", text))
    shown = mqis("doctor", "--config", "mqis.toml", "--json", fails=True)
    assert ("4321 is a port of a recipe" in shown) is told, shown
""",
)

TABLE = Recipe(
    "A pipeline table",
    (
        Edit(
            "src/mqis/pipeline/graph/bronze.py",
            '@table(schemas.RECIPE, requires="journal")\n'
            "def recipe(repeats: DataFrame) -> DataFrame:\n"
            '    """The servers of a recipe."""\n'
            '    return repeats.select("server").distinct()\n\n\n',
            '@table(schemas.SNAPSHOTS, requires="snapshot_lines", files="snapshot_lines")\n',
        ),
        Edit("src/mqis/pipeline/schemas.py", 'RECIPE = _schema("server text")\n', "REPEATS ="),
        Edit("docs/pipeline.md", "| `recipe` | the servers of a recipe |\n", "| `repeats` |"),
    ),
    """
from mqis.pipeline.graph import TABLES
made = TABLES["recipe"]
assert made.reads == ("repeats",)
assert made.schema.fieldNames() == ["server"]
assert made.make.__doc__ == "The servers of a recipe."
""",
)

COMMAND = Recipe(
    "A command",
    (
        Edit(
            "src/mqis/cli/recipe.py",
            '''"""``mqis recipe``: a command of a recipe."""

from __future__ import annotations

from mqis.cli.options import JsonOption
from mqis.cli.output import print_json, say


def recipe(*, json: JsonOption = False) -> None:
    """Print the answer of a recipe."""
    if json:
        print_json({"answer": 42})
    else:
        say("42")
''',
        ),
        Edit(
            "src/mqis/cli/registry.py",
            '        "recipe": ("recipe", "Print the answer of a recipe"),\n',
            '        "man": ("man", ',
        ),
        Edit("docs/commands.md", "| `mqis recipe` | prints an answer |\n", "| `mqis completion"),
    ),
    """
assert '"answer": 42' in mqis("recipe", "--json")
assert "Print the answer of a recipe" in mqis("--help")
""",
)

PAGE = Recipe(
    "A console page",
    (
        Edit(
            "src/mqis/web/pages/recipe.py",
            '''"""A page of a recipe."""

from __future__ import annotations

from starlette.responses import Response

from mqis.web.page_requests import PageRequest


def show(request: PageRequest) -> Response:
    return request.page("recipe.html", names=["<b>flour</b>", "water"])
''',
        ),
        Edit(
            "src/mqis/web/serving.py",
            '        _get("/recipe", reading(recipe.show)),\n',
            '        _get("/statistics", ',
        ),
        Edit("src/mqis/web/serving.py", "    recipe,\n", "    servers,\n"),
        Edit(
            "src/mqis/web/templates/recipe.html",
            '{% extends "base.html" %}\n{% block title %}Recipe{% endblock %}\n'
            "{% block main %}\n<h1>Recipe</h1>\n"
            "{% for name in names %}<p>{{ name }}</p>{% endfor %}\n{% endblock %}\n",
        ),
        Edit("src/mqis/web/console.py", '    ("/recipe", "Recipe"),\n', '    ("/statistics", '),
        Edit("docs/console.md", "| Recipe | what goes in |\n", "| Alerts |"),
    ),
    """
from http.cookiejar import CookieJar
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, build_opener
from mqis.storage.sqlite import SqliteStore
from mqis.views.console.server_places import Places
from mqis.web.console_settings import ConsoleSettings
from mqis.web.serving import running_console
SqliteStore("directory.db").close()
with running_console(ConsoleSettings(Places(stores=("directory.db",)), port=0)) as url:
    visitor = build_opener(HTTPCookieProcessor(CookieJar()))
    visitor.open(url).close()
    page = visitor.open(urljoin(url, "/recipe")).read().decode()
assert "<p>&lt;b&gt;flour&lt;/b&gt;</p><p>water</p>" in page, page
assert '<a href="/recipe" aria-current="page">Recipe</a>' in page, page
""",
)

RECIPES = (PROPERTY, MESSAGE, DECODER, HEALTH_CHECK, TABLE, COMMAND, PAGE)

#: Runs ``use`` with a function that runs a command in this process and returns its output.
PROGRAM = """
import io, re, sys
from contextlib import redirect_stderr, redirect_stdout


def mqis(*words, fails=False):
    from mqis.cli.main import main
    sys.argv = ["mqis", *words]
    out, status = io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(out):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    assert fails or not status, (words, status, out.getvalue())
    return out.getvalue()

"""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What recipes edit and use, without what Python and tests leave there."""
    place = tmp_path_factory.mktemp("recipes") / "original"
    for name in ("src", "docs", "tools"):
        ignored = shutil.ignore_patterns("__pycache__", "*.png", "*.tsv", "*.egg-info")
        shutil.copytree(ROOT / name, place / name, ignore=ignored)
    yield place
    shutil.rmtree(place)


def named_in(heading: str) -> set[str]:
    """The files and directories that the list of a recipe names, also in links."""
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##)", CONTRIBUTING, re.S | re.M)
    assert found is not None, heading
    text = found[1]
    return {*re.findall(r"`([\w./-]+/[\w./-]+)`", text), *re.findall(r"\]\(([\w./-]+)\)", text)}


def changed(before: Path, after: Path) -> set[str]:
    found = set()
    for path in after.rglob("*"):
        name = path.relative_to(after)
        if path.is_file() and {"src", "docs", "tools"} & {name.parts[0]}:
            old = before / name
            if not old.exists() or old.read_bytes() != path.read_bytes():
                found.add(name.as_posix())
    return found


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)
def test_a_recipe_is_complete(recipe: Recipe, original: Path, tmp_path: Path) -> None:
    if recipe is TABLE:
        pytest.importorskip("pyspark")
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    for edit in recipe.edits:
        path = copy / edit.path
        text = path.read_text("utf-8") if edit.before else ""
        assert text.count(edit.before) >= 1, f"{edit.path} has no {edit.before!r}"
        path.write_text(text.replace(edit.before, edit.added + edit.before, 1), "utf-8")
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM + recipe.use],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy / "src"), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = named_in(recipe.heading)
    new = {edit.path for edit in recipe.edits if not edit.before}
    for touched in changed(original, copy):
        # A new module may stand anywhere in the directory that the recipe names.
        known = names | (
            {touched} if str(Path(touched).parent) in names and touched in new else set()
        )
        assert touched in known, f"{touched} changed, which the recipe does not name"


def test_every_recipe_of_the_issue_is_performed() -> None:
    """The others are a setting and a metric, which generated pages and a running server test."""
    headings = set(re.findall(r"^### (A .*)$", CONTRIBUTING, re.M))
    assert headings - {recipe.heading for recipe in RECIPES} == {"A setting", "A metric"}
