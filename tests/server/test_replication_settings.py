"""The settings of the replication machine follow from the keys of [replication]."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqis.config.replication import ReplicationSection
from mqis.protocol.replication.settings import DEFAULTS
from mqis.server.replication import settings_of

SAME = ("heartbeat_s", "retry_s", "reply_wait_s", "recovery_wait_s", "clock_skew_s")


def test_the_defaults_of_both_are_the_same() -> None:
    assert settings_of(ReplicationSection()) == DEFAULTS


@pytest.mark.parametrize("name", SAME)
def test_a_key_with_the_name_of_a_setting_sets_it(name: str) -> None:
    keys: dict[str, Any] = {name: 7}
    section = replace(ReplicationSection(), **keys)
    assert getattr(settings_of(section), name) == 7


def test_forwarded_powers_are_believed_only_where_the_key_says_so() -> None:
    section = replace(ReplicationSection(), forwarded_powers=True)
    assert (settings_of(section).forwarded_powers, DEFAULTS.forwarded_powers) == (True, False)


def test_settings_that_follow_from_other_keys() -> None:
    section = replace(
        ReplicationSection(), gather_ms=20, retry_s=9000, reply_wait_s=5, recovery_wait_s=8
    )
    found = settings_of(section)
    assert (found.gather_s, found.max_retry_s) == (0.02, 9000)
    assert (found.repeat_s, found.recovery_retry_s) == (2.0, 1.0)
