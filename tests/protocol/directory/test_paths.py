"""Path names: Computer\\Queue for queues, a plain name for the others, none for users and links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqis.protocol.directory.paths import MAX_NAME, QueuePath, check_path
from mqis.protocol.errors import DirectoryError
from mqis.wire.hresult import HResult
from mqis.wire.mqds.objecttype import ObjectType
from tests.protocol.directory.world import CN, ENTERPRISE, MACHINE, QUEUE, SITE


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
        for fails in (QueuePath.parse, lambda text: check_path(QUEUE, text)):
            with pytest.raises(DirectoryError) as caught:
                fails(path)
            assert caught.value.hresult == HResult.MQ_ERROR_ILLEGAL_QUEUE_PATHNAME

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
        with pytest.raises(DirectoryError) as caught:
            check_path(MACHINE, name)
        assert caught.value.hresult == HResult.MQ_ERROR_INVALID_PARAMETER
