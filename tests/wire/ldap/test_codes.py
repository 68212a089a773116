"""The numbers of LDAP, written out once more from RFC 4511 and MS-ADTS."""

from __future__ import annotations

import pytest

from mqis.wire.ldap.codes import ResultCode, SearchScope, code_name
from mqis.wire.ldap.controls import DirSyncFlags, SdFlags

#: RFC 4511 4.1.9.
RESULTS = {
    0: "success",
    1: "operationsError",
    2: "protocolError",
    3: "timeLimitExceeded",
    4: "sizeLimitExceeded",
    5: "compareFalse",
    6: "compareTrue",
    7: "authMethodNotSupported",
    8: "strongerAuthRequired",
    10: "referral",
    11: "adminLimitExceeded",
    12: "unavailableCriticalExtension",
    13: "confidentialityRequired",
    14: "saslBindInProgress",
    16: "noSuchAttribute",
    17: "undefinedAttributeType",
    18: "inappropriateMatching",
    19: "constraintViolation",
    20: "attributeOrValueExists",
    21: "invalidAttributeSyntax",
    32: "noSuchObject",
    33: "aliasProblem",
    34: "invalidDNSyntax",
    36: "aliasDereferencingProblem",
    48: "inappropriateAuthentication",
    49: "invalidCredentials",
    50: "insufficientAccessRights",
    51: "busy",
    52: "unavailable",
    53: "unwillingToPerform",
    54: "loopDetect",
    64: "namingViolation",
    65: "objectClassViolation",
    66: "notAllowedOnNonLeaf",
    67: "notAllowedOnRDN",
    68: "entryAlreadyExists",
    69: "objectClassModsProhibited",
    71: "affectsMultipleDSAs",
    80: "other",
}


@pytest.mark.parametrize(("code", "name"), RESULTS.items())
def test_results_by_number(code: int, name: str) -> None:
    assert code_name(code).lower() == f"{name.lower()} ({code})"


def test_there_are_no_other_results() -> None:
    assert {int(code) for code in ResultCode} == set(RESULTS)


def test_scopes_by_number() -> None:
    """RFC 4511 4.5.1.2."""
    assert [SearchScope(n).name for n in range(3)] == ["BASE", "ONE_LEVEL", "SUBTREE"]


def test_parts_of_a_descriptor_by_number() -> None:
    """MS-ADTS 3.1.1.3.4.1.11."""
    assert {flag.name: int(flag) for flag in SdFlags} == {
        "OWNER": 1,
        "GROUP": 2,
        "DACL": 4,
        "SACL": 8,
    }


def test_flags_of_dirsync_by_number() -> None:
    """MS-ADTS 3.1.1.3.4.1.3; the last is bit 31 of a signed number."""
    flags = DirSyncFlags
    assert (flags.OBJECT_SECURITY, flags.ANCESTORS_FIRST, flags.PUBLIC_DATA_ONLY) == (
        0x1,
        0x800,
        0x2000,
    )
    assert flags.INCREMENTAL_VALUES == -(2**31)
