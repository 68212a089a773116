"""Every method of both interfaces as docs/spec/mqds-methods.csv has it."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqis.wire.mqds import dscomm, dscomm2
from mqis.wire.ndr import (
    CONTEXT_HANDLE,
    GUID,
    LENIENT_WSTRING,
    PROPVARIANT,
    PROPVARIANT_TYPE,
    WSTRING,
    Conformant,
    ConformantVarying,
    Description,
    Full,
    Parameters,
    Range,
    Ref,
    Unique,
)
from mqis.wire.rpc.interfaces import InterfaceDescription, Operation

TABLE = Path(__file__).parents[3] / "docs" / "spec" / "mqds-methods.csv"

#: The specification's parameter names, as the dataclasses call them.
OURS = {
    "dwObjectType": "object_type",
    "pwcsPathName": "path",
    "dwSDLength": "length",
    "SecurityDescriptor": "descriptor",
    "pSecurityDescriptor": "descriptor",
    "aProp": "ids",
    "apVar": "values",
    "pObjGuid": "guid",
    "pGuid": "guid",
    "phServerAuth": "auth",
    "pbServerSignature": "signature",
    "pdwServerSignatureSize": "signature_size",
    "SecurityInformation": "information",
    "nLength": "length",
    "lpnLengthNeeded": "length_needed",
    "dwContext": "context",
    "pHandle": "handle",
    "Handle": "handle",
    "phContext": "handle",
    "pphServerAuth": "handle",
    "pwcsContext": "context",
    "pRestriction": "restriction",
    "pColumns": "columns",
    "pSort": "sort",
    "dwSize": "size",
    "dwOutSize": "out_size",
    "pbBuffer": "values",
    "pdwIndex": "index",
    "lplpSiteServers": "servers",
    "pguidEnterpriseId": "enterprise_id",
    "fSetupMode": "setup_mode",
    "dwClientBuffMaxSize": "buffer_size",
    "pClientBuff": "token",
    "dwClientBuffSize": "token_size",
    "pdwClientBuffSize": "token_size",
    "pServerbuff": "token",
    "dwServerBuffSize": "token_size",
    "fIP": "ip",
    "abChallenge": "challenge",
    "dwCallengeSize": "challenge_size",
    "abSignature": "answer",
    "pdwSignatureSize": "answer_size",
    "dwSignatureMaxSize": "answer_max",
    "abCallengeResponce": "answer",
    "pdwCallengeResponceSize": "answer_size",
    "dwCallengeResponceMaxSize": "answer_max",
    "pdwNumberOfSites": "count",
    "ppguidSites": "sites",
    "lpwszComputerName": "computer_name",
    "lpwszDomainName": "domain_name",
    "lplpwszGCList": "servers",
}
#: What a method returns, as the dataclasses call it.
RESULTS = {"HRESULT": ["result"], "unsigned long": ["port"], "long": ["is_gc"], "void": []}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameter list: [in, out] name: type {attributes}."""

    directions: str
    name: str
    type: str
    attributes: str

    @property
    def ours(self) -> str:
        """The name in a response, and in most requests."""
        return OURS.get(self.name, self.name)

    @property
    def requested(self) -> str:
        """The name in a request: a variant that a response fills in has only a type there."""
        typed = self.directions == "in,out" and self.type.startswith("PROPVARIANT")
        return "types" if typed else self.ours

    @property
    def range(self) -> tuple[int, int] | None:
        found = re.search(r"range\((\d+),(\d+)\)", self.attributes)
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True)
class Method:
    opnum: int
    name: str
    parameters: list[Parameter]
    returns: str

    def sent(self, direction: str) -> list[Parameter]:
        on_the_wire = [p for p in self.parameters if p.type != "handle_t"]
        return [p for p in on_the_wire if direction in p.directions.split(",")]


def methods(interface: str) -> list[Method]:
    with TABLE.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["interface"] == interface]
    return [
        Method(int(row["opnum"]), row["name"], _parameters(row["parameters"]), row["return_type"])
        for row in rows
        if "NotUsedOnWire" not in row["name"]
    ]


def _parameters(cell: str) -> list[Parameter]:
    pattern = r"(in,out|in|out) (\w+):([^{;]+)(?:\{(.*?)\})?(?:; |$)"
    found = [Parameter(*match) for match in re.findall(pattern, cell)]
    assert len(found) == len(re.findall(r"(?:^|; )(?:in|out)[ ,]", cell))
    return found


CALLBACKS = "dscomm callback (client serves)"
INTERFACES = {"dscomm": dscomm.DSCOMM, "dscomm2": dscomm2.DSCOMM2}
OPERATIONS: dict[str, tuple[Operation[Any, Any], ...]] = {
    "dscomm": dscomm.DSCOMM.operations,
    "dscomm2": dscomm2.DSCOMM2.operations,
    CALLBACKS: dscomm.DSCOMM.callbacks,
}
PAIRS = [
    pytest.param(method, operation, id=method.name)
    for interface, operations in OPERATIONS.items()
    for method, operation in zip(methods(interface), operations, strict=True)
]


@pytest.mark.parametrize(
    ("interface", "numbers", "taken"),
    [
        pytest.param(
            dscomm.DSCOMM,
            [*range(9), *range(10, 15), *range(19, 24), 27],
            28,
            marks=pytest.mark.req("MQDS-3.1.4-05"),
        ),
        pytest.param(dscomm2.DSCOMM2, [*range(7), 8], 9, marks=pytest.mark.req("MQDS-3.3.4-02")),
    ],
)
def test_opnums(interface: InterfaceDescription, numbers: list[int], taken: int) -> None:
    assert [operation.opnum for operation in interface.operations] == numbers
    assert interface.opnums == taken


@pytest.mark.req("MQDS-1.9-01", "MQDS-1.7-01")
def test_uuids_and_versions() -> None:
    assert str(dscomm.SYNTAX.uuid) == "77df7a80-f298-11d0-8358-00a024c480a8"
    assert str(dscomm2.SYNTAX.uuid) == "708cca10-9569-11d1-b2a5-0060977d8118"
    assert {(s.major, s.minor) for s in (dscomm.SYNTAX, dscomm2.SYNTAX)} == {(1, 0)}


@pytest.mark.req("MQDS-2.2.5-02")
def test_handles_are_shared_between_the_interfaces() -> None:
    assert not dscomm.DSCOMM.strict_context_handles
    assert not dscomm2.DSCOMM2.strict_context_handles


@pytest.mark.req("MQDS-6-02")
@pytest.mark.parametrize(("method", "operation"), PAIRS)
def test_number_name_and_order_of_parameters(
    method: Method, operation: Operation[Any, Any]
) -> None:
    assert (operation.opnum, operation.name) == (method.opnum, method.name)
    request, response = operation.request.scope, operation.response.scope
    assert list(request.names) == [p.requested for p in method.sent("in")]
    results = RESULTS[method.returns]
    assert list(response.names) == [*(p.ours for p in method.sent("out")), *results]


@pytest.mark.req("MQDS-3.1.4-07", "MQDS-6-01")
@pytest.mark.parametrize(("method", "operation"), PAIRS)
def test_types_of_parameters(method: Method, operation: Operation[Any, Any]) -> None:
    _check_types(method.sent("in"), operation.request)
    _check_types(method.sent("out"), operation.response)


def _check_types(declared: list[Parameter], described: Parameters[Any]) -> None:
    members = dict(zip(described.scope.names, described.scope.members, strict=True))
    for parameter in declared:
        name = parameter.requested if parameter.requested in members else parameter.ours
        variant = PROPVARIANT_TYPE if name == "types" else PROPVARIANT
        _check_type(parameter, members[name], variant)


def _check_type(parameter: Parameter, member: Description[Any], variant: Description[Any]) -> None:
    attributes = parameter.attributes
    # A reference pointer at the top sends nothing of its own, so both spellings will do there.
    inner = member.target if isinstance(member, Ref) else member
    if "ref to unique" in attributes:
        assert isinstance(inner, Unique)
        inner = inner.target
    elif attributes.startswith("unique"):
        assert isinstance(member, Unique)
        inner = member.target
    elif attributes.startswith("ptr"):
        assert isinstance(member, Full)
        inner = member.target
        if "inner unique" in attributes:
            (text,) = inner.scope.members  # type: ignore[attr-defined]
            assert isinstance(text, Unique)
            inner = text.target
    else:
        assert not isinstance(inner, (Unique, Full))
    if "string" in attributes:
        # The one string that the server ignores is read whether it ends in a zero or not.
        assert inner is (LENIENT_WSTRING if parameter.name == "pwcsContext" else WSTRING)
    if "length_is" in attributes:
        assert isinstance(inner, ConformantVarying)
    elif "size_is" in attributes:
        assert isinstance(inner, Conformant)
    if "context_handle" in attributes:
        assert inner is CONTEXT_HANDLE
    if parameter.type in ("GUID*", "const GUID*"):
        assert inner is GUID
    if parameter.type.startswith("PROPVARIANT"):
        assert getattr(inner, "element", None) is variant
    if parameter.range is not None:
        assert isinstance(inner, Range)
        assert (inner.low, inner.high) == parameter.range
