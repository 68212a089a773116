"""The server's side of "shapes": one method per operation, dataclasses in and out."""

from __future__ import annotations

from math import pi
from typing import Any

from examples.shapes import interface as idl
from examples.shapes.interface import Kind
from mqis.protocol.rpc.faults import RpcFault
from mqis.runtime.rpc.incoming import IncomingCall
from mqis.runtime.rpc.typed import TypedService
from mqis.wire.ndr import Choice, ContextHandle, Syntax
from mqis.wire.rpc.interfaces import NDR64


class ShapesService(TypedService):
    """The service; its only state is the clients' open piles."""

    def __init__(self) -> None:
        #: The number of open piles, and of those that were run down with their clients.
        self.open_piles = 0
        self.rundowns = 0
        super().__init__(
            idl.SHAPES,
            {
                idl.NUMBERS: lambda _call, request: request,
                idl.ARRAYS: self._arrays,
                idl.STRINGS: self._strings,
                idl.POINTERS: self._pointers,
                idl.FIGURES: self._figures,
                idl.POLYLINE_CALL: self._polyline,
                idl.AREAS: self._areas,
                idl.PROPERTIES: self._properties,
                idl.OPEN_PILE: self._open_pile,
                idl.TAKE: self._take,
                idl.CLOSE_PILE: self._close_pile,
                idl.MIRROR: self._mirror,
                idl.SQUARES: self._squares,
                idl.CONSULT: self._consult,
                idl.FAIL: self._fail,
                idl.WHO_AM_I: self._who_am_i,
            },
            # The sizes of arrays in the answer that the request determines; the client checks them.
            sizes={
                idl.PROPERTIES.opnum: lambda request: {"count": len(request.values)},
                idl.TAKE.opnum: lambda request: {"count": request.count},
                idl.SQUARES.opnum: lambda request: {"count": request.count},
            },
        )

    def _arrays(self, _call: IncomingCall, request: idl.Arrays) -> idl.Arrays:
        return idl.Arrays(
            request.fixed[::-1],
            request.conformant[::-1],
            request.varying[::-1],
            request.room,
            request.both[::-1],
        )

    def _strings(self, _call: IncomingCall, request: idl.Strings) -> idl.Strings:
        maybe = None if request.maybe is None else request.maybe.upper()
        return idl.Strings(
            request.wide.upper(), request.narrow.upper(), maybe, request.label.upper()
        )

    def _pointers(self, _call: IncomingCall, request: idl.Pointers) -> idl.PointersAnswer:
        values = (request.ref, request.unique, request.full, request.shared)
        return idl.PointersAnswer(
            request.unique,
            sum(value or 0 for value in values),
            values.count(None),
            request.full is not None and request.full == request.shared,
        )

    def _figures(self, _call: IncomingCall, request: idl.FiguresAsked) -> idl.FiguresGiven:
        last, names, figure = None, [], request.first
        while figure is not None:
            last = idl.Figure(figure.name, figure.origin, figure.outline, last)
            names.append(figure.name)
            figure = figure.next
        return idl.FiguresGiven(last, tuple(names))

    def _polyline(self, _call: IncomingCall, request: idl.PolylineCall) -> idl.PolylineCall:
        line = request.line
        return idl.PolylineCall(idl.Polyline(not line.closed, line.width, line.points[::-1]))

    def _areas(self, _call: IncomingCall, request: idl.ShapesAsked) -> idl.ShapesGiven:
        return idl.ShapesGiven(tuple(area(s.body) for s in request.shapes), request.mark)

    def _properties(self, _call: IncomingCall, request: idl.PropertiesAsked) -> idl.PropertiesGiven:
        values = request.values[::-1]
        return idl.PropertiesGiven(values, tuple(value.vt for value in values))

    # --- context handles: the group of the client's connections holds what they stand for ---------

    def _open_pile(self, call: IncomingCall, request: idl.PileAsked) -> idl.PileOpened:
        pile = list(range(request.height))
        self.open_piles += 1
        id_ = call.create_handle(pile, self._run_down)
        return idl.PileOpened(ContextHandle(id_))

    def _take(self, call: IncomingCall, request: idl.TakeAsked) -> idl.Taken:
        pile = call.group.handle(request.handle.uuid, call.interface)
        assert isinstance(pile, list)
        taken = [pile.pop() for _ in range(min(request.count, len(pile)))]
        return idl.Taken(tuple(taken))

    def _close_pile(self, call: IncomingCall, request: idl.PileOpened) -> idl.PileOpened:
        call.group.close_handle(request.handle.uuid, call.interface)
        self.open_piles -= 1
        return idl.PileOpened(ContextHandle.NULL)

    def _run_down(self) -> None:
        self.open_piles -= 1
        self.rundowns += 1

    # --- the rest ---------------------------------------------------------------------------------

    def _mirror(self, _call: IncomingCall, request: idl.Octets) -> idl.Octets:
        return idl.Octets(None if request.octets is None else request.octets[::-1])

    def _squares(self, _call: IncomingCall, request: idl.SquaresAsked) -> idl.Squares:
        numbers = range(request.first, request.first + request.count)
        return idl.Squares(tuple(number * number for number in numbers))

    async def _consult(self, call: IncomingCall, request: idl.Number) -> idl.Number:
        """Waits for a callback; a handler that waits is a coroutine function."""
        syntax = Syntax.NDR64 if call.transfer == NDR64 else Syntax.NDR20
        stub = idl.DOUBLE_IT.request.encode(request, syntax)
        answer, big_endian = await call.call_back(idl.DOUBLE_IT.opnum, stub)
        doubled = idl.DOUBLE_IT.response.decode(answer, syntax, big_endian=big_endian)
        return idl.Number(doubled.number + 1)

    def _fail(self, _call: IncomingCall, request: idl.Number) -> Any:
        raise RpcFault(request.number, "as you asked")

    def _who_am_i(self, call: IncomingCall, _request: idl.Nothing) -> idl.Caller:
        return idl.Caller(None if call.identity is None else str(call.identity), call.level)


def area(body: Choice) -> float:
    value = body.value
    if body.tag == Kind.CIRCLE:
        return float(pi * value * value)
    if body.tag == Kind.RECTANGLE:
        return float(value.width * value.height)
    if body.tag == Kind.POLYGON and value is not None:
        return _shoelace(value.points)
    return 0.0


def _shoelace(points: tuple[idl.Point, ...]) -> float:
    pairs = zip(points, points[1:] + points[:1], strict=True)
    return abs(sum(a.x * b.y - b.x * a.y for a, b in pairs)) / 2
