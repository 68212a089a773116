"""Negotiation of the presentation contexts of a bind or alter_context (MS-RPCE 3.3.1.5.3).

Pure functions of the proposals and the existing contexts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mqis.protocol.errors import ProtocolError
from mqis.protocol.rpc.endpoint_map import Interface
from mqis.wire.rpc.interfaces import (
    KEEP_CONNECTION_ON_ORPHAN,
    SECURITY_CONTEXT_MULTIPLEXING,
    SyntaxId,
    feature_bits,
)
from mqis.wire.rpc.pdu_bodies import ContextElement, ContextResult, ContextVerdict, RejectReason

FEATURES = SECURITY_CONTEXT_MULTIPLEXING | KEEP_CONNECTION_ON_ORPHAN

#: A fragment field of a bind is at least and at most this (MS-RPCE 3.3.1.5.3; peers check it).
MIN_FRAG, MAX_FRAG = 2048, 5840


@dataclass(frozen=True, slots=True)
class PresentationContext:
    """An accepted context: an interface and its transfer syntax."""

    id: int
    interface: Interface
    transfer: SyntaxId


@dataclass(frozen=True, slots=True)
class Negotiated:
    results: tuple[ContextResult, ...]
    accepted: tuple[PresentationContext, ...]
    features: int | None


def fragment_size(*proposed: int, at_most: int = MAX_FRAG) -> int:
    """The size for both sides: the smallest proposal within bounds, a multiple of eight."""
    return max(MIN_FRAG, min(*proposed, at_most)) & ~7


def negotiate(
    proposals: Sequence[ContextElement],
    interfaces: Sequence[Interface],
    existing: Mapping[int, PresentationContext],
) -> Negotiated:
    """Decides on each proposal, in order."""
    results: list[ContextResult] = []
    accepted: dict[int, PresentationContext] = {}
    features: int | None = None
    offered = _offered(proposals, interfaces)
    for element in proposals:
        if not element.transfers:
            raise ProtocolError(f"context {element.context_id} names no transfer syntax")
        bits = feature_bits(element.transfers[0])
        if bits is not None:
            if features is not None:
                raise ProtocolError("features are negotiated twice")
            features = bits & FEATURES
            results.append(ContextResult(ContextVerdict.NEGOTIATE_ACK, features))
            continue
        known = existing.get(element.context_id)
        if known is not None:
            _check_unchanged(known, element)
        interface = _serving(element, interfaces)
        twin = accepted.get(element.context_id)
        if twin is not None and twin.interface is not interface:
            raise ProtocolError(f"context {element.context_id} is two interfaces")
        if interface is None:
            results.append(_rejected(RejectReason.ABSTRACT_SYNTAX_NOT_SUPPORTED))
            continue
        transfer = known.transfer if known else _preferred(interface, offered[interface.syntax])
        again = any(context.interface is interface for context in accepted.values())
        if transfer not in element.transfers or again:
            results.append(_rejected(RejectReason.TRANSFER_SYNTAXES_NOT_SUPPORTED))
            continue
        assert transfer is not None
        context = PresentationContext(element.context_id, interface, transfer)
        accepted[context.id] = context
        results.append(
            ContextResult(ContextVerdict.ACCEPTANCE, RejectReason.NOT_SPECIFIED, transfer)
        )
    return Negotiated(tuple(results), tuple(accepted.values()), features)


def _serving(element: ContextElement, interfaces: Sequence[Interface]) -> Interface | None:
    return next((i for i in interfaces if i.offers(element.abstract)), None)


def _offered(
    proposals: Sequence[ContextElement], interfaces: Sequence[Interface]
) -> dict[SyntaxId, set[SyntaxId]]:
    """The transfer syntaxes that the elements offer, by interface.

    A client that supports several sends an element for each; only one of them is accepted.
    """
    offered: dict[SyntaxId, set[SyntaxId]] = {}
    for element in proposals:
        interface = _serving(element, interfaces)
        if interface is not None:
            offered.setdefault(interface.syntax, set()).update(element.transfers)
    return offered


def _preferred(interface: Interface, offered: Collection[SyntaxId]) -> SyntaxId | None:
    """The most preferred syntax among those offered."""
    return next((s for s in interface.transfer_syntaxes if s in offered), None)


def _check_unchanged(known: PresentationContext, element: ContextElement) -> None:
    """Raises if a context that is proposed again would change."""
    if not known.interface.offers(element.abstract):
        raise ProtocolError(f"context {known.id} is bound to another interface")
    chosen = _preferred(known.interface, element.transfers)
    if chosen not in (None, known.transfer):
        raise ProtocolError(f"context {known.id} is bound with another transfer syntax")


def _rejected(reason: RejectReason) -> ContextResult:
    return ContextResult(ContextVerdict.PROVIDER_REJECTION, reason)
