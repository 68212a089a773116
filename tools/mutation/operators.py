"""Small edits that can be made anywhere in a Python file, for mutations that nobody chose.

``places`` lists the statements of a file that can be edited, each with its possible edits. An edit
replaces a span of the text, so everything else stays as it is, comments included. Left out are
annotations, docstrings, decorators, blocks for type checkers, and the inside of f-strings, whose
positions Python before 3.12 does not know.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tools.mutation.functions import Definition, is_docstring

_SHIFTED: dict[type[ast.cmpop], ast.cmpop] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
}
_EXCHANGED = {"max": "min", "min": "max", "any": "all", "all": "any"}
_LOOSER = {"fullmatch": "search", "match": "search"}
_OMITTED = (ast.AugAssign, ast.Delete, ast.Raise, ast.Break, ast.Continue)
_BINDING = (ast.Assign, ast.AnnAssign, ast.Pass, ast.Raise, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the bytes from ``start`` to ``end`` of a file."""

    operator: str
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


@dataclass(frozen=True, slots=True)
class Place:
    """A statement that can be edited; ``function`` is empty for what runs on import.

    ``names`` are what such a statement defines: whoever mentions them depends on it.
    """

    function: str
    line: int
    last: int
    names: frozenset[str]
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The surroundings of a statement: its function, and names of one type in reach."""

    function: str = ""
    prefix: str = ""
    names: frozenset[str] = frozenset()
    variables: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)


def places(source: str) -> list[Place]:
    """The statements of a file that can be edited, in their order."""
    return list(_File(source).places())


class _File:
    def __init__(self, source: str) -> None:
        self._module = ast.parse(source)
        self._data = source.encode()
        lengths = [len(line) for line in self._data.splitlines(keepends=True)]
        self._begins = [sum(lengths[:number]) for number in range(len(lengths) + 1)]

    def places(self) -> Iterator[Place]:
        yield from self._block(self._module.body, _Scope())

    def _block(self, body: Sequence[ast.stmt], scope: _Scope) -> Iterator[Place]:
        for number, statement in enumerate(body):
            if number == 0 and is_docstring(list(body)):
                continue
            yield from self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: _Scope) -> Iterator[Place]:
        if isinstance(node, Definition):
            yield from self._definition(node, scope)
        elif isinstance(node, ast.ClassDef):
            fields = dict(_annotated(node.body))
            inner = replace(
                scope,
                prefix=f"{scope.prefix}{node.name}.",
                names=frozenset({node.name}),
                fields=fields,
            )
            yield from self._block(node.body, inner)
        elif not _for_types(node):
            yield from self._place(node, scope)
            for block in _blocks(node):
                yield from self._block(block, scope)

    def _definition(self, node: Definition, scope: _Scope) -> Iterator[Place]:
        name = f"{scope.prefix}{node.name}"
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        variables = {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation}
        inner = replace(
            scope, function=name, prefix=f"{name}.", variables={**scope.variables, **variables}
        )
        yield from self._block(node.body, inner)

    def _place(self, node: ast.stmt, scope: _Scope) -> Iterator[Place]:
        edits = tuple(self._edits(node, scope))
        if not edits:
            return
        header = _header_end(node)
        yield Place(scope.function, node.lineno, header, scope.names | _defined(node), edits)

    def _edits(self, node: ast.stmt, scope: _Scope) -> Iterator[Edit]:
        if scope.function:
            yield from self._whole(node)
        if isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Constant):
            yield from self._condition(node.test)
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from self._swallowed(handler)
        for expression in _expressions(node):
            yield from self._expression(expression, scope)

    def _whole(self, node: ast.stmt) -> Iterator[Edit]:
        """Leaves the statement out, or the rest of the function."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # the body of a protocol's method
        if isinstance(node, _OMITTED) or _can_go(node):
            yield self._edit("statement left out", node, "pass")
        if isinstance(node, ast.Return):
            if node.value is not None and not _is_false(node.value):
                yield self._edit("early return", node, "return None")
        elif not isinstance(node, _BINDING):  # what follows would mostly miss the name anyway
            yield self._edit("early return", node, "return")

    def _condition(self, test: ast.expr) -> Iterator[Edit]:
        yield self._edit("condition negated", test, f"(not ({self._text(test)}))")
        yield self._edit("condition dropped", test, "True")

    def _swallowed(self, handler: ast.ExceptHandler) -> Iterator[Edit]:
        first, last = handler.body[0], handler.body[-1]
        if not isinstance(first, ast.Pass):
            start, end = self._span(first)[0], self._span(last)[1]
            yield Edit("exception swallowed", start, end, "pass")

    def _expression(self, node: ast.expr, scope: _Scope) -> Iterator[Edit]:
        for inner in _walk(node):
            yield from self._conditions(inner)
            yield from self._values(inner)
            yield from self._variables(inner, scope)

    def _conditions(self, inner: ast.AST) -> Iterator[Edit]:
        match inner:
            case ast.IfExp(test=test):
                yield self._edit("condition negated", test, f"(not ({self._text(test)}))")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self._condition(test)
            case ast.BoolOp(values=values):
                yield from self._dropped(inner, values)
            case ast.Compare(ops=[op, *_]) if type(op) in _SHIFTED:
                ops = [_SHIFTED[type(op)], *inner.ops[1:]]
                text = ast.unparse(ast.Compare(inner.left, ops, inner.comparators))
                yield self._edit("comparison shifted", inner, f"({text})")

    def _values(self, inner: ast.AST) -> Iterator[Edit]:
        match inner:
            case ast.Constant(value=bool() as value):
                yield self._edit("constant changed", inner, str(not value))
            case ast.Constant(value=int() as value):
                yield self._edit("constant changed", inner, str(value + 1))
            case ast.Await(value=value):
                yield self._edit("await left out", inner, f"({self._text(value)})")
            case ast.Call(func=ast.Name(id=name) as called) if name in _EXCHANGED:
                yield self._edit("max and min exchanged", called, _EXCHANGED[name])
            case ast.Call(func=ast.Attribute(attr=name) as called) if name in _LOOSER:
                text = f"{self._text(called.value)}.{_LOOSER[name]}"
                yield self._edit("search for fullmatch", called, text)

    def _variables(self, inner: ast.AST, scope: _Scope) -> Iterator[Edit]:
        match inner:
            case ast.Name(id=name, ctx=ast.Load()):
                for other in _alike(name, scope.variables):
                    yield self._edit("wrong variable", inner, other)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()):
                for other in _alike(name, scope.fields):
                    yield self._edit("wrong variable", inner, f"self.{other}")

    def _dropped(self, node: ast.BoolOp, values: Sequence[ast.expr]) -> Iterator[Edit]:
        word = " and " if isinstance(node.op, ast.And) else " or "
        for left_out in range(len(values)):
            kept = [v for number, v in enumerate(values) if number != left_out]
            text = word.join(f"({self._text(value)})" for value in kept)
            yield self._edit("condition dropped", node, f"({text})")

    def _edit(self, operator: str, node: ast.stmt | ast.expr, text: str) -> Edit:
        return Edit(operator, *self._span(node), text)

    def _span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._begins[node.lineno - 1] + node.col_offset
        return start, self._begins[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._data[start:end].decode()


def _annotated(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation)


def _alike(name: str, types: Mapping[str, str]) -> list[str]:
    """The other names of the same type."""
    if name not in types:
        return []
    return [other for other, type_ in types.items() if other != name and type_ == types[name]]


def _for_types(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    targets = node.targets if isinstance(node, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return bool(names & {"__all__", "__slots__"}) or isinstance(node, ast.Import | ast.ImportFrom)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The statements inside of a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, [])
    if isinstance(node, ast.Try):
        yield from (handler.body for handler in node.handlers)
    if isinstance(node, ast.Match):
        yield from (case.body for case in node.cases)


def _header_end(node: ast.stmt) -> int:
    """The last line of a statement without those inside of it."""
    inside = [block[0].lineno for block in _blocks(node) if block]
    return max(node.lineno, min(inside) - 1) if inside else node.end_lineno or node.lineno


def _expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement itself, without annotations and the statements inside."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.withitem):
                yield child.context_expr
            elif isinstance(child, ast.match_case) and child.guard is not None:
                yield child.guard


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, without the inside of f-strings."""
    yield node
    if isinstance(node, ast.JoinedStr):
        return
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _defined(node: ast.stmt) -> frozenset[str]:
    targets: list[ast.expr] = getattr(node, "targets", None) or [getattr(node, "target", node)]
    found = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return frozenset(found) if isinstance(node, ast.Assign | ast.AnnAssign) else frozenset()


def _can_go(node: ast.stmt) -> bool:
    """Returns whether the statement is there for what it does, and not for a name it binds."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.Expr)


def _is_false(node: ast.expr) -> bool:
    """True for None and what counts as false as it does: most callers could not tell them apart."""
    empty = isinstance(node, ast.Tuple | ast.List) and not node.elts
    return empty or (isinstance(node, ast.Constant) and not node.value)
