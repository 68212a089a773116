"""The codes of MS-CMPO: ranks, reasons, protocols and results (2.2.4 to 2.2.9, 3.3.4)."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class SessionRank(IntEnum):
    """SESSION_RANK (2.2.8): the caller's role in the session."""

    PRIMARY = 1
    SECONDARY = 2


class TeardownType(IntEnum):
    """TEARDOWN_TYPE (2.2.9): the reason for ending a session. 1 is undefined."""

    FORCE = 0
    PROBLEM = 2


class ResourceType(IntEnum):
    """RESOURCE_TYPE (2.2.7)."""

    CONNECTIONS = 0


class ComProtocol(IntFlag):
    """COM_PROTOCOL (2.2.4): the protocol sequences of a partner."""

    IP_TCP = 0x01
    SPX = 0x02
    NET_BEUI = 0x04
    IP_UDP = 0x08
    LRPC = 0x20


class CmResult(IntEnum):
    """The result of a method. Only 0 is success: some errors are positive."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> CmResult:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    # fmt: off
    OK = (0x00000000, "The call succeeded.")
    TEARING_DOWN = (0x80000119, "The session is being torn down.")
    SESSION_DOWN = (0x80000120, "There is no such session.")
    SERVER_NOT_READY = (0x80000123, "The session is in another state than the call needs.")
    TIMED_OUT = (0x80000124, "The session was not set up in time.")
    OUT_OF_RESOURCES = (0x80000127, "The partner grants no more connections.")
    VERSION_SET_NOT_SUPPORTED = (0x80000172, "The partners have no version in common.")
    PROTOCOL_NOT_SUPPORTED = (0x80000173, "The partners have no protocol sequence in common.")
    FAIL = (0x80004005, "The session was not torn down in time, or failed.")
    INVALID_ARGUMENT = (0x80070057, "An argument is wrong.")
    ACCESS_DENIED = (0x80070005, "The caller has no permission for this call.")
    #: RPC_S_* codes, which callers get for faults of the RPC runtime.
    SERVER_UNAVAILABLE = (0x000006BA, "The partner cannot be reached.")
    SERVER_TOO_BUSY = (0x000006BB, "The partner is too busy.")
    PROCNUM_OUT_OF_RANGE = (0x000006D1, "The partner lacks the operation.")
    CALL_CANCELLED = (0x0000071A, "The partner did not answer in time.")
    # fmt: on


def result_name(code: int) -> str:
    """A result's name and number, or its number alone."""
    try:
        return f"{CmResult(code).name} (0x{code:08X})"
    except ValueError:
        return f"0x{code:08X}"


def result_text(code: int) -> str:
    """A result as text for people: its name and meaning, or its number."""
    try:
        return f"{result_name(code)}: {CmResult(code).meaning}"
    except ValueError:
        return result_name(code)
