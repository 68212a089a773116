"""Correlated values: counts and discriminants named by [size_is], [length_is] and [switch_is].

A scope is a structure or the parameters of a call. It converts its Python value to wire values, in
wire order, and back. If the Python class has no field for a count or discriminant, encoding fills
it in and decoding drops it after the check. If the class has one, the two are compared.

Checks are those of MS-RPCE 3.1.1.5.3 at target level 6.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter, itemgetter
from typing import Any

from mqis.wire.ndr.description import Correlation, Count, Description, Given, Measure
from mqis.wire.ndr.stream import NdrError

Wire = list[Any]
#: Converts a Python value to wire values.
Lower = Callable[[Any, Mapping[str, int]], Sequence[Any]]
#: Converts wire values to a Python value; the last argument is the offset for errors.
Raise = Callable[[Wire, Mapping[str, int], int], Any]
#: Applies one rule to wire values, in either direction.
Apply = Callable[[Wire, Mapping[str, int]], None]


@dataclass(frozen=True, slots=True)
class CorrelationRule:
    """A correlation of one member."""

    #: The indices of the counted value and of its count (None: the count is not in this scope).
    index: int
    count_index: int | None
    correlation: Correlation
    measure: Measure
    pairs: bool
    hidden: bool
    name: str

    def stated(self, wire: Sequence[Any], given: Mapping[str, int]) -> int:
        """The value of the other side of the correlation."""
        expression = self.correlation.expression
        if isinstance(expression, int):
            return expression
        if isinstance(expression, Given):
            if expression.name not in given:
                raise TypeError(f"{self.name} needs the request's {expression.name!r}")
            return given[expression.name] // expression.divisor
        assert self.count_index is not None
        # A count behind a null pointer is 0.
        return (wire[self.count_index] or 0) // expression.divisor

    def describe(self, found: int, stated: int) -> str:
        expression = self.correlation.expression
        other = expression if isinstance(expression, int) else expression.name
        return f"{self.name} has {found}, {self.correlation.kind}({other}) says {stated}"

    def compare(
        self, value: Any, found: int, wire: Sequence[Any], given: Mapping[str, int]
    ) -> None:
        stated = self.stated(wire, given)
        kind = self.correlation.kind
        if value is None:
            # 3.1.1.5.3.3.1.2: a null pointer has no elements. A null union has no discriminant.
            if kind in ("size_is", "length_is") and stated:
                raise ValueError(self.describe(0, stated))
        elif found > stated if kind == "at_most" else found != stated:
            raise ValueError(self.describe(found, stated))

    def fill(self, wire: Wire, found: int) -> None:
        """Writes the count that the Python value lacks; several arrays have to agree on it."""
        expression = self.correlation.expression
        assert isinstance(expression, Count)
        assert self.count_index is not None
        stated = wire[self.count_index]
        if stated is None:
            wire[self.count_index] = found * expression.divisor
        elif stated // expression.divisor != found:
            raise ValueError(self.describe(found, stated // expression.divisor))

    def lower(self, wire: Wire, given: Mapping[str, int]) -> None:
        value = wire[self.index]
        if value is None and self.hidden and self.correlation.kind == "switch_is":
            raise ValueError(f"{self.name} is null, so its discriminant is unknown")
        found = 0 if value is None else self.measure(value)
        if self.hidden:
            self.fill(wire, found)
        elif not self.pairs:
            self.compare(value, found, wire, given)
        if self.pairs:
            stated = found if self.hidden else self.stated(wire, given)
            if found > stated or (value is None and stated):
                raise ValueError(self.describe(found, stated))
            wire[self.index] = None if value is None else (stated, value)

    def check(self, wire: Wire, given: Mapping[str, int]) -> None:
        value = wire[self.index]
        if self.pairs and value is not None:
            found, wire[self.index] = value
        else:
            found = 0 if value is None else self.measure(value)
        self.compare(value, found, wire, given)

    # Every call has rules, and nearly all of them are of one kind: a count of elements. The common
    # case of those is decided in one step. All other cases (a null pointer, a wrong count) go to
    # the general method, which also words the error.

    @property
    def _counts_elements(self) -> bool:
        expression, kind = self.correlation.expression, self.correlation.kind
        in_elements = not isinstance(expression, int) and expression.divisor == 1
        return in_elements and not self.pairs and kind in ("size_is", "length_is")

    def lowering(self) -> Apply:
        """Returns ``lower``, or a faster equivalent."""
        if not self.hidden:
            return self._passing(self.lower)
        index, count_index, measure, lower = self.index, self.count_index, self.measure, self.lower
        assert count_index is not None

        def fill(wire: Wire, given: Mapping[str, int]) -> None:
            value = wire[index]
            if value is None or wire[count_index] is not None:
                lower(wire, given)
            else:
                wire[count_index] = measure(value)

        return fill if self._counts_elements else lower

    def checking(self) -> Apply:
        """Returns ``check``, or a faster equivalent."""
        return self._passing(self.check)

    def _passing(self, otherwise: Apply) -> Apply:
        """Returns a function that accepts agreeing values and calls ``otherwise`` for the rest."""
        if not self._counts_elements:
            return otherwise
        expression = self.correlation.expression
        if isinstance(expression, Given):
            return _pass_given(self.index, expression.name, self.measure, otherwise)
        assert self.count_index is not None
        return _pass_counted(self.index, self.count_index, self.measure, otherwise)


def _pass_counted(index: int, count_index: int, measure: Measure, otherwise: Apply) -> Apply:
    def compare(wire: Wire, given: Mapping[str, int]) -> None:
        value = wire[index]
        if value is None or measure(value) != wire[count_index]:
            otherwise(wire, given)

    return compare


def _pass_given(index: int, name: str, measure: Measure, otherwise: Apply) -> Apply:
    def compare(wire: Wire, given: Mapping[str, int]) -> None:
        value = wire[index]
        if value is None or measure(value) != given.get(name):
            otherwise(wire, given)

    return compare


class MemberScope:
    """The members of a structure or call in wire order, and the class that holds their values."""

    def __init__(self, cls: type[Any], members: Mapping[str, Description[Any]]) -> None:
        self.cls = cls
        self.names = tuple(members)
        self.members = tuple(members.values())
        own = [field.name for field in fields(cls) if field.init]
        self.visible = tuple(name for name in self.names if name in own)
        if list(self.visible) != own:
            raise TypeError(f"{cls.__name__} has the fields {own}, described are {self.names}")
        rules = [rule for index in range(len(self.names)) for rule in self._rules_of(index)]
        # Encoding wraps values into pairs last; decoding unwraps them first.
        rules.sort(key=lambda rule: rule.pairs)
        self._lowering = [rule.lowering() for rule in rules]
        self._checking = [rule.checking() for rule in reversed(rules)]
        counted = {rule.count_index for rule in rules}
        for index, name in enumerate(self.names):
            if name not in own and index not in counted:
                raise TypeError(f"{cls.__name__} has no field {name!r}, and no count is named so")

    def _rules_of(self, index: int) -> list[CorrelationRule]:
        description, name = self.members[index], self.names[index]
        rules = []
        for correlation in description.correlations:
            count_index = None
            if isinstance(correlation.expression, Count):
                if correlation.expression.name not in self.names:
                    raise TypeError(f"{name}: there is no {correlation.expression.name!r} here")
                count_index = self.names.index(correlation.expression.name)
            rules.append(
                CorrelationRule(
                    index,
                    count_index,
                    correlation,
                    description.measure,
                    correlation.kind == "size_is" and description.has_maximum,
                    count_index is not None and self.names[count_index] not in self.visible,
                    f"{self.cls.__name__}.{name}",
                )
            )
        return rules

    def lower(self) -> Lower:
        get = _getter(self.visible)
        if not self._lowering:
            return get
        hidden = [place for place, name in enumerate(self.names) if name not in self.visible]
        rules = self._lowering

        def lower(value: Any, given: Mapping[str, int]) -> Wire:
            wire = [*get(value, given)]
            for place in hidden:
                wire.insert(place, None)
            for lower_one in rules:
                lower_one(wire, given)
            return wire

        return lower

    def raise_(self) -> Raise:
        cls, rules = self.cls, self._checking
        visible = self._visible_of()

        def build(wire: Wire, given: Mapping[str, int], offset: int) -> Any:
            try:
                for check in rules:
                    check(wire, given)
                return cls(*visible(wire))
            except ValueError as problem:
                raise NdrError(str(problem), offset) from None

        return build

    def _visible_of(self) -> Callable[[Wire], Sequence[Any]]:
        """Returns a function that picks the wire values for which the class has fields."""
        places = [self.names.index(name) for name in self.visible]
        if len(places) == len(self.names):
            return _everything
        if len(places) > 1:
            return itemgetter(*places)
        return lambda wire: [wire[place] for place in places]


def _everything(wire: Wire) -> Wire:
    return wire


def _getter(names: tuple[str, ...]) -> Lower:
    """Returns a function that gets the fields as a tuple, even if there are fewer than two."""
    if not names:
        return lambda _value, _given: ()
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda value, _given: (get(value),)
    return lambda value, _given: get(value)
