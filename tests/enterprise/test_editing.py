"""Single entries of an enterprise file are changed, and not one other byte of it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.config.errors import ConfigError
from mqis.enterprise.adopting import PlanText

#: Lists that alternate, comments everywhere, strings and lists that look like something else.
FILE = """\
# Acme: [[queue]] in a comment
[enterprise]
name = "Acme" # the name

# first machine
[[machine]]
name = 'm1'      # [[x]]
site = "Delft"
# its queue
[[queue]]   # inbox
path = 'm1\\q1'
label = "not a # comment, \\"nor\\" [[this]]"

# second machine

[[machine]]
"name" = "m2"
site = \"\"\"Del\\
ft\"\"\"
# its queue
[[queue]]
path = 'm2\\q2'
label = '''
[[machine]]
name = "no"'''

# links
[[link]]
sites = [
  "Delft", # ] here
  "Leiden",
]
cost=7# tight

[options.log]
level = "info"
# the end"""


def changed(text: str) -> PlanText:
    return PlanText(text, "enterprise.toml")


def test_a_value_is_replaced_where_it_stands() -> None:
    plan = changed(FILE)
    plan.update("link", 0, {"cost": 12, "sites": ["A", "B"]})
    plan.update("queue", 0, {"label": "new"})
    plan.update("queue", 1, {"label": "L2"})
    plan.update("machine", 1, {"name": "m3"})
    expected = FILE.replace("cost=7#", "cost=12#").replace('"name" = "m2"', '"name" = "m3"')
    expected = expected.replace('[\n  "Delft", # ] here\n  "Leiden",\n]', '["A", "B"]')
    expected = expected.replace('"not a # comment, \\"nor\\" [[this]]"', '"new"')
    assert plan.text == expected.replace("'''\n[[machine]]\nname = \"no\"'''", '"L2"')


def test_comments_stay_where_lists_alternate() -> None:
    """Writing the whole file again moved the second machine and its comments up to the first."""
    plan = changed(FILE)
    plan.update("machine", 0, {"address": "10.0.0.9"})
    after = 'site = "Delft"\n'
    assert plan.text == FILE.replace(after, f'{after}address = "10.0.0.9"\n')
    plan.drop("queue", 0)
    gone = (
        '[[queue]]   # inbox\npath = \'m1\\q1\'\nlabel = "not a # comment, \\"nor\\" [[this]]"\n\n'
    )
    assert gone in FILE
    assert plan.text == FILE.replace(after, f'{after}address = "10.0.0.9"\n').replace(gone, "")


def test_an_entry_is_added_after_its_like_or_at_the_end() -> None:
    plan = changed(FILE)
    plan.add("machine", {"name": "m9", "site": "Delft"})
    assert 'ft"""\n\n[[machine]]\nname = "m9"\nsite = "Delft"\n# its queue\n' in plan.text
    assert [m["name"] for m in plan.entries("machine")] == ["m1", "m2", "m9"]
    plan.add("site", {"name": "Delft"})
    assert plan.text.endswith('# the end\n\n[[site]]\nname = "Delft"\n')


def test_marks_and_line_ends_of_an_editor_stay() -> None:
    text = "\ufeff" + FILE.replace("\n", "\r\n")
    plan = changed(text)
    plan.update("link", 0, {"cost": 8, "description": "leased"})
    assert plan.text == text.replace(
        "cost=7# tight\r\n", 'cost=8# tight\r\ndescription = "leased"\r\n'
    )
    plan.drop("link", 0)
    assert "leased" not in plan.text
    assert plan.text.count("\n") == plan.text.count("\r\n")


def test_a_list_in_one_line_is_not_changed() -> None:
    plan = changed('machine = [{name = "m1"}]\n')
    with pytest.raises(ConfigError, match=r"not written as \[\[machine\]\] tables"):
        plan.entries("machine")


_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)


@given(st.lists(st.tuples(st.sampled_from(["machine", "queue", "link"]), _NAMES), max_size=5))
def test_what_is_added_is_read_and_taken_out_again(entries: list[tuple[str, str]]) -> None:
    plan = changed(FILE)
    for kind, name in entries:
        plan.add(kind, {"name": name, "text": f"{name}\n'''\\"})
        assert plan.entries(kind)[-1] == {"name": name, "text": f"{name}\n'''\\"}
        plan.update(kind, len(plan.entries(kind)) - 1, {"text": name, "more": [name]})
        assert plan.entries(kind)[-1] == {"name": name, "text": name, "more": [name]}
    for kind, _ in entries:
        plan.drop(kind, len(plan.entries(kind)) - 1)
    assert tomllib.loads(plan.text) == tomllib.loads(FILE)
