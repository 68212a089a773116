"""Descriptions of binds and their security."""

from __future__ import annotations

from mqis.protocol.authentication import AuthLevel, auth_type_name
from mqis.protocol.capture.interfaces import BY_SYNTAX
from mqis.wire.ndr import Syntax
from mqis.wire.rpc.bodies import ContextElement, NakReason
from mqis.wire.rpc.syntax import NDR20, NDR64, SyntaxId, feature_bits
from mqis.wire.rpc.trailer import AuthTrailer

SYNTAXES = {NDR20: Syntax.NDR20, NDR64: Syntax.NDR64}


def interface_name(syntax: SyntaxId) -> str:
    known = BY_SYNTAX.get(syntax)
    return str(syntax) if known is None else known.description.name


def proposal(element: ContextElement) -> str:
    """Describes a proposed context; '' for one that only negotiates features."""
    syntaxes = []
    for transfer in element.transfers:
        if feature_bits(transfer) is not None:
            return ""
        syntax = SYNTAXES.get(transfer)
        syntaxes.append(str(transfer) if syntax is None else syntax.name)
    return f"{interface_name(element.abstract)} in {' or '.join(syntaxes)}"


def security(auth: AuthTrailer | None) -> str:
    if auth is None:
        return ""
    known = auth.level in list(AuthLevel)
    level = AuthLevel(auth.level).name.lower() if known else f"level {auth.level}"
    return f"{auth_type_name(auth.type)}, {level}"


def nak(reason: int) -> str:
    try:
        return NakReason(reason).name.lower().replace("_", " ")
    except ValueError:
        return f"reason {reason}"
