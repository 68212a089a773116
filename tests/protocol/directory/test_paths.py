"""Path names: Computer\\Queue for queues, a plain name for the others, none for users and links."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.paths import MAX_NAME, QueuePath, check_new_path, check_path
from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory.world import CN, ENTERPRISE, MACHINE, QUEUE, SITE

#: Names that Active Directory holds and the text does not know.
ESTATE_NAMES = [
    "Bestellungen \u00e4\u00f6\u00fc",
    "two words",
    "a;b",
    " blanks ",
    "\u6ce8\u6587",
    "line\nfeed",
    "q" * 147,
]


def refusal(check: Callable[[ObjectType, str], object], kind: ObjectType, path: str) -> int | None:
    try:
        check(kind, path)
    except DirectoryError as error:
        return error.hresult
    return None


class TestQueuePath:
    @pytest.mark.req("MQDS-2.2.9-01")
    @pytest.mark.parametrize(
        ("path", "computer", "queue"),
        [
            ("C14\\orders", "C14", "orders"),
            ("c14.corp.example\\Orders-2", "c14.corp.example", "Orders-2"),
            ("a\\b", "a", "b"),
            # MSMQ 1.0 allows what later versions do not.
            ('C14\\a+b,c"d', "C14", 'a+b,c"d'),
            ("C14\\\x7f", "C14", "\x7f"),
            ("C14\\" + "q" * 124, "C14", "q" * 124),
            ("m" * 256 + "\\q", "m" * 256, "q"),
        ],
    )
    def test_public_queues(self, path: str, computer: str, queue: str) -> None:
        assert QueuePath.parse(path) == QueuePath(computer, queue)
        assert str(QueuePath(computer, queue)) == path
        assert check_path(QUEUE, path) == path
        check_new_path(QUEUE, path)

    @pytest.mark.req("MQDS-2.2.9-01")
    @pytest.mark.parametrize(
        "path",
        [
            "",
            "C14",
            "\\orders",
            "C14\\",
            "C14\\private$\\orders",
            "C14\\system$;deadxact",
            "C14\\orders;sub",
            "C14\\two words",
            "C 14\\orders",
            "C14\\\u00e4",
            "C14\\orders\n",
            "C14\\a\0b",
            "C14\\" + "q" * 125,
            "m" * 257 + "\\q",
        ],
    )
    def test_everything_else_is_refused(self, path: str) -> None:
        assert refusal(check_new_path, QUEUE, path) == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME

    @pytest.mark.parametrize(
        "path",
        ["", "C14", "\\orders", "C14\\", "C14\\private$\\orders", "C14\\a\0b", "C14\\\ud800"],
    )
    def test_what_no_queue_can_have(self, path: str) -> None:
        for fails in (lambda _type, text: QueuePath.parse(text), check_path):
            assert refusal(fails, QUEUE, path) == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME

    @pytest.mark.parametrize("queue", ESTATE_NAMES)
    def test_what_exists_is_taken_as_it_is(self, queue: str) -> None:
        path = f"B\u00fcro 1\\{queue}"
        assert check_path(QUEUE, path) == path
        assert QueuePath.parse(path) == QueuePath("B\u00fcro 1", queue)
        assert refusal(check_new_path, QUEUE, f"C14\\{queue}") is not None

    @pytest.mark.parametrize("queue", ["Bestellungen \u00e4", "\u6ce8\u6587", "a", "q" * 124])
    def test_names_of_any_letters_can_be_allowed(self, queue: str) -> None:
        check_new_path(QUEUE, f"B\u00fcro\\{queue}", unicode=True)
        check_new_path(MACHINE, "B\u00fcro", unicode=True)

    @pytest.mark.parametrize(
        "path",
        [
            "C14\\ a",
            "C14\\a ",
            "C14\\a;b",
            "C14\\a\nb",
            "C14\\a\u2028",
            "C 14\\a",
            "C14\\private$\\a",
            "C14\\" + "\u00e4" * 125,
            "C14",
        ],
    )
    def test_but_not_names_that_nobody_sees(self, path: str) -> None:
        found = refusal(lambda kind, text: check_new_path(kind, text, unicode=True), QUEUE, path)
        assert found == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME

    @given(st.text(max_size=30))
    def test_any_text_parses_or_is_refused(self, text: str) -> None:
        try:
            path = QueuePath.parse(text)
        except DirectoryError:
            return
        assert str(path) == text
        assert "\\" not in path.computer + path.queue


class TestPlainNames:
    @pytest.mark.req("MQDS-2.2.9-01")
    @pytest.mark.parametrize("object_type", [MACHINE, SITE, CN, ENTERPRISE])
    @pytest.mark.parametrize("name", ["C14", "c14.corp.example", "x" * MAX_NAME])
    def test_names(self, object_type: ObjectType, name: str) -> None:
        assert check_path(object_type, name) == name

    @pytest.mark.req("MQDS-2.2.9-01")
    @pytest.mark.parametrize("object_type", [SITE, CN, ENTERPRISE])
    @pytest.mark.parametrize("name", ["Head Office", "Z\u00fcrich", "a;b", "a\\b"])
    def test_names_are_unicode(self, object_type: ObjectType, name: str) -> None:
        assert check_path(object_type, name) == name

    @pytest.mark.parametrize("object_type", [MACHINE, SITE, CN, ENTERPRISE])
    @pytest.mark.parametrize("name", ["", "a\0b", "x" * (MAX_NAME + 1)])
    def test_what_is_no_name(self, object_type: ObjectType, name: str) -> None:
        with pytest.raises(DirectoryError) as caught:
            check_path(object_type, name)
        assert caught.value.hresult == HResult.MQ_ERROR_INVALID_PARAMETER

    @pytest.mark.parametrize("name", ["C14\\orders", "C 14", "C\u00e4"])
    def test_a_computer_name_is_visible_characters_without_backslash(self, name: str) -> None:
        assert refusal(check_new_path, MACHINE, name) == HResult.MQ_ERROR_INVALID_PARAMETER

    def test_a_computer_that_exists_has_any_name_without_backslash(self) -> None:
        for name in ("C 14", "C\u00e4"):
            assert check_path(MACHINE, name) == name
        assert refusal(check_path, MACHINE, "a\\b") == HResult.MQ_ERROR_INVALID_PARAMETER
