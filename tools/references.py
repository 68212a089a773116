"""Reads which definition of a package refers to which other, with the types that mypy infers.

A name is followed to what it was imported from, and an attribute to the class of the value before
the dot. Where that type is unknown (``Any``), the attribute's bare name is recorded instead.
"""

from __future__ import annotations

import ast
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mypy import build, nodes
from mypy.config_parser import parse_config_file
from mypy.find_sources import create_source_list
from mypy.options import Options
from mypy.patterns import ClassPattern
from mypy.state import state
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    LiteralType,
    Overloaded,
    ProperType,
    TupleType,
    Type,
    TypedDictType,
    TypeOfAny,
    TypeType,
    TypeVarType,
    UnionType,
    get_proper_type,
)
from mypy.typevars import fill_typevars_with_any

#: Before the bare name of an attribute whose owner is unknown.
UNKNOWN = "?"
#: Before a class of which some attribute is read by a computed name: all of them may be meant.
ANY_OF = "*"
#: Before a module that is passed on as a value: what reads its attributes cannot be followed.
PASSED = "@"
#: Before a class that only an annotation names: nothing is made of it there.
ANNOTATED = "~"

#: Functions that keep what they make or decorate in a table: the module refers to it then.
REGISTERING = frozenset(
    {
        "mqis.pipeline.registry.stream",
        "mqis.pipeline.registry.step",
        "mqis.pipeline.registry.table",
        "mqis.pipeline.registry.view",
        "mqis.server.monitoring.metrics.all_metrics._counter",
        "typer.main.Typer.callback",
        "typer.main.Typer.command",
    }
)
_GETTERS = frozenset({"builtins.getattr", "builtins.hasattr", "builtins.setattr"})
_NAMING = frozenset({"operator.attrgetter", "operator.methodcaller"})
#: The parts of each kind of node: the visitors of mypy are compiled, and cannot be extended.
_PARTS: dict[str, tuple[str, ...]] = {
    "Argument": ("initializer",),
    "AsPattern": ("pattern",),
    "AssertStmt": ("expr", "msg"),
    "AssertTypeExpr": ("expr",),
    "AssignmentExpr": ("value",),
    "AssignmentStmt": ("rvalue", "lvalues"),
    "AwaitExpr": ("expr",),
    "Block": ("body",),
    "CallExpr": ("callee", "args", "analyzed"),
    "CastExpr": ("expr",),
    "ClassDef": ("decorators", "base_type_exprs", "metaclass", "keywords", "defs", "analyzed"),
    "ClassPattern": ("class_ref", "positionals", "keyword_values"),
    "ComparisonExpr": ("operands",),
    "ConditionalExpr": ("cond", "if_expr", "else_expr"),
    "DelStmt": ("expr",),
    "DictExpr": ("items",),
    "DictionaryComprehension": ("sequences", "indices", "condlists", "key", "value"),
    "ExpressionStmt": ("expr",),
    "ForStmt": ("index", "expr", "body", "else_body"),
    "FuncDef": ("arguments", "body"),
    "GeneratorExpr": ("sequences", "indices", "condlists", "left_expr"),
    "IfStmt": ("expr", "body", "else_body"),
    "Import": ("assignments",),
    "ImportAll": ("assignments",),
    "ImportFrom": ("assignments",),
    "IndexExpr": ("base", "index", "analyzed"),
    "LambdaExpr": ("arguments", "body"),
    "ListComprehension": ("generator",),
    "ListExpr": ("items",),
    "MappingPattern": ("keys", "values"),
    "MatchStmt": ("subject", "patterns", "guards", "bodies"),
    "OpExpr": ("left", "right", "analyzed"),
    "OperatorAssignmentStmt": ("rvalue", "lvalue"),
    "OrPattern": ("patterns",),
    "RaiseStmt": ("expr", "from_expr"),
    "ReturnStmt": ("expr",),
    "SequencePattern": ("patterns",),
    "SetComprehension": ("generator",),
    "SetExpr": ("items",),
    "SliceExpr": ("begin_index", "end_index", "stride"),
    "StarExpr": ("expr",),
    "SuperExpr": ("call",),
    "TryStmt": ("body", "types", "handlers", "else_body", "finally_body"),
    "TupleExpr": ("items",),
    "TypeApplication": ("expr",),
    "UnaryExpr": ("expr",),
    "ValuePattern": ("expr",),
    "WhileStmt": ("expr", "body", "else_body"),
    "WithStmt": ("expr", "target", "body"),
    "YieldExpr": ("expr",),
    "YieldFromExpr": ("expr",),
} | dict.fromkeys(
    (
        *("BreakStmt", "BytesExpr", "ComplexExpr", "ContinueStmt", "EllipsisExpr", "FloatExpr"),
        *("GlobalDecl", "IntExpr", "NonlocalDecl", "PassStmt", "SingletonPattern"),
        *("StarredPattern", "StrExpr", "TempNode", "NamedTupleExpr", "NewTypeExpr"),
        *("EnumCallExpr", "TypedDictExpr", "TypeAliasExpr", "TypeVarExpr", "ParamSpecExpr"),
        *("TypeVarTupleExpr", "PromoteExpr", "RevealExpr"),
    ),
    (),
)


def _flat(part: Any) -> Iterator[nodes.Node]:
    """The nodes in a part: one, none, or lists of them."""
    if isinstance(part, nodes.Node):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from _flat(value)
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _flat(each)


@dataclass(frozen=True, slots=True)
class Definition:
    """Something that a package defines: where, and how many lines it takes."""

    kind: str
    module: str
    line: int
    lines: int


@dataclass(slots=True)
class ModuleReferences:
    """The definitions of one module, and what each of them refers to."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    references: dict[str, list[str]] = field(default_factory=dict)
    #: The full names of what the module imports, by the name that it has there.
    imported: dict[str, str] = field(default_factory=dict)
    resolved: int = 0
    #: Attributes that fell back to their name, with their line.
    unresolved: list[tuple[str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClassFacts:
    """One class: its members, its ancestors, and the members that something outside calls."""

    members: frozenset[str]
    #: Full names, the class itself first; only those of the package.
    ancestors: tuple[str, ...]
    #: Members that override one of a class outside the package.
    overriding: frozenset[str]
    #: A Protocol, an abstract or a typed dictionary: an annotation is its use.
    described: bool
    #: The protocols of the package that it fulfils.
    protocols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class References:
    modules: Mapping[str, ModuleReferences]
    classes: Mapping[str, ClassFacts]


def read_references(sources: Path, cache: Path, config: Path | None = None) -> References:
    """Analyses all modules below a directory. The cache keeps what other packages define."""
    options = _options(sources, cache, config)
    found = create_source_list([str(sources)], options)
    names = [source.module for source in found]
    roots = {name.partition(".")[0] for name in names}
    for kept in (cache / "3.11").glob("*"):  # mypy reads no more than it needs of what it knows
        if kept.name.partition(".")[0] in roots:
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    built = build.build(found, options)
    return References(
        {name: _extract(built, name, roots) for name in names}, _classes(built, names, roots)
    )


def _options(sources: Path, cache: Path, config: Path | None) -> Options:
    options = Options()
    if config is not None:
        parse_config_file(options, lambda: None, str(config))
    options.python_version = (3, 11)
    options.mypy_path = [str(sources)]
    options.namespace_packages = options.explicit_package_bases = True
    options.check_untyped_defs = options.export_types = options.preserve_asts = True
    options.cache_dir = str(cache)
    options.sqlite_cache = False
    return options


# --- classes --------------------------------------------------------------------------------------


def _infos(built: build.BuildResult, wanted: Iterable[str]) -> Iterator[nodes.TypeInfo]:
    for module in wanted:
        pending = [built.files[module].names]
        while pending:
            for symbol in pending.pop().values():
                node = symbol.node
                if isinstance(node, nodes.TypeInfo) and node.module_name == module:
                    yield node
                    pending.append(node.names)


def _classes(
    built: build.BuildResult, wanted: Iterable[str], roots: set[str]
) -> dict[str, ClassFacts]:
    infos = {info.fullname: info for info in _infos(built, wanted)}
    protocols = [info for info in infos.values() if info.is_protocol]
    return {name: _facts(info, protocols, roots) for name, info in infos.items()}


def _facts(info: nodes.TypeInfo, protocols: list[nodes.TypeInfo], roots: set[str]) -> ClassFacts:
    own = [base for base in info.mro if base.fullname.partition(".")[0] in roots]
    outside = [base for base in info.mro if base not in own]
    members = frozenset(info.names)
    return ClassFacts(
        members,
        tuple(base.fullname for base in own),
        members
        if info.fallback_to_any
        else frozenset(n for n in members if any(n in base.names for base in outside)),
        info.is_protocol or info.is_abstract or info.typeddict_type is not None,
        tuple(p.fullname for p in protocols if p is not info and _fulfils(info, p)),
    )


def _fulfils(info: nodes.TypeInfo, protocol: nodes.TypeInfo) -> bool:
    if any(info.get(name) is None for name in protocol.protocol_members):
        return False
    if protocol in info.mro:
        return True
    with state.strict_optional_set(True):
        return is_subtype(fill_typevars_with_any(info), fill_typevars_with_any(protocol))


# --- one module -----------------------------------------------------------------------------------


def _extract(built: build.BuildResult, module: str, roots: set[str]) -> ModuleReferences:
    tree = built.files[module]
    reader = _Reader(tree, built.types, roots)
    for each in tree.defs:
        reader.read(each)
    parsed = ast.parse(Path(tree.path).read_bytes())
    imports = _Imports(reader, built.files)
    imports.visit(parsed)
    found = reader.result()
    found.imported |= imports.imported
    return found


class _Reader:
    """Walks through a module that mypy has checked, and notes what each definition mentions."""

    def __init__(
        self, tree: nodes.MypyFile, types: Mapping[nodes.Expression, Type], roots: set[str]
    ) -> None:
        self.tree = tree
        self.types = types
        self.roots = roots
        self.definitions: dict[str, Definition] = {}
        self.found: dict[str, set[str]] = defaultdict(set)
        self.resolved = 0
        self.unresolved: list[tuple[str, int]] = []
        #: The definitions that the code being read belongs to: several for ``a = b = value``.
        self.within: tuple[str, ...] = (tree.fullname,)
        self.in_function = False
        self.owner: nodes.TypeInfo | None = None
        #: Local functions by the identity of their nodes.
        self.local: dict[int, str] = {}
        self.local_mentions: list[tuple[tuple[str, ...], int]] = []
        self.define(tree.fullname, "module", 1, 1)

    def result(self) -> ModuleReferences:
        for within, node in self.local_mentions:
            if node in self.local:
                self.mention(self.local[node], within)
        return ModuleReferences(
            self.definitions,
            {name: sorted(targets - {name}) for name, targets in sorted(self.found.items())},
            resolved=self.resolved,
            unresolved=self.unresolved,
        )

    def define(self, name: str, kind: str, line: int, end: int) -> None:
        self.definitions[name] = Definition(kind, self.tree.fullname, line, end - line + 1)

    def mention(self, target: str, within: tuple[str, ...] | None = None) -> None:
        for name in self.within if within is None else within:
            self.found[name].add(target)

    @contextmanager
    def inside(self, *names: str) -> Iterator[None]:
        before, self.within = self.within, names
        try:
            yield
        finally:
            self.within = before

    def read(self, node: nodes.Node) -> None:
        _READERS.get(type(node), _Reader.read_parts)(self, node)

    def read_parts(self, node: nodes.Node) -> None:
        for name in _PARTS[type(node).__name__]:
            for part in _flat(getattr(node, name)):
                self.read(part)

    # definitions

    def _func_def(self, o: nodes.FuncDef) -> None:
        self._function(o, [o])

    def _decorator(self, o: nodes.Decorator) -> None:
        self._function(o.func, [o, o.func, o.var], o)

    def _overloaded_func_def(self, o: nodes.OverloadedFuncDef) -> None:
        for item in [*o.items, *([] if o.impl is None else [o.impl])]:
            if isinstance(item, nodes.Decorator):
                self._function(item.func, [o, item, item.func, item.var], item)
            elif isinstance(item, nodes.FuncDef):
                self._function(item, [o, item])

    def _function(
        self,
        function: nodes.FuncDef,
        same: list[nodes.Node],
        decorated: nodes.Decorator | None = None,
    ) -> None:
        """Reads a function; ``same`` are the nodes by which a name may mean it."""
        name = function.name
        decorators = [] if decorated is None else decorated.original_decorators
        line = min([function.line, *(each.line for each in decorators)])
        end = function.end_line or line
        if self.in_function:
            full = f"{self.within[0]}.<locals>.{name}"
            self.local |= {id(node): full for node in same}
            self.define(full, "local function", line, end)
            if decorators or function.original_def is not None:
                self.mention(full)  # a decorator may keep it, or it replaces a variable
        else:
            if "-" in name or function.line < 0:
                return
            kind = "function" if self.owner is None else "method"
            full = f"{self.within[0]}.{name}"
            self.define(full, kind, line, end)
            if any(self._callee(each) in REGISTERING for each in decorators):
                self.mention(full)
        outside, self.in_function = self.in_function, True
        with self.inside(full):
            for decorator in decorators:
                self.read(decorator)
            self.read_parts(function)
        self.in_function = outside

    def _callee(self, decorator: nodes.Expression) -> str:
        called = decorator.callee if isinstance(decorator, nodes.CallExpr) else decorator
        if isinstance(called, nodes.RefExpr) and called.fullname:
            return called.fullname
        if isinstance(called, nodes.MemberExpr):
            for info in self._owners(self.types.get(called.expr)) or ():
                return f"{info.fullname}.{called.name}"
        return ""

    def _class_def(self, o: nodes.ClassDef) -> None:
        if self.in_function:
            for base in o.info.bases:
                self._type(base.type)
            self.read_parts(o)
            return
        full = f"{self.within[0]}.{o.name}"
        start = min([o.line, *(each.line for each in o.decorators)])
        self.define(full, "class", start, o.end_line or o.line)
        outer, self.owner = self.owner, o.info
        with self.inside(full):
            for ancestor in o.info.mro[1:]:
                self._type(ancestor)
            self.read_parts(o)
        self.owner = outer

    def _assignment_stmt(self, o: nodes.AssignmentStmt) -> None:
        names = [] if self.in_function else _assigned(o.lvalues)
        if self.owner is not None and (_has_fields(self.owner) or self.owner.is_enum):
            names = []
        names = [name for name in names if not name.startswith("__")]
        if not names:
            self.read_parts(o)
            return
        kind = "constant" if self.owner is None else "class constant"
        full = [f"{self.within[0]}.{name}" for name in names]
        for name in full:
            if name not in self.definitions:
                self.define(name, kind, o.line, o.end_line or o.line)
        if self._callee(o.rvalue) in REGISTERING:
            for name in full:
                self.mention(name)
        with self.inside(*full):
            self.read(o.rvalue)
            if o.is_alias_def and isinstance(o.lvalues[0], nodes.NameExpr):
                alias = o.lvalues[0].node
                if isinstance(alias, nodes.TypeAlias):
                    self._types_in(alias.target)

    # mentions

    def _name_expr(self, o: nodes.NameExpr) -> None:
        node = o.node
        if node is None:
            symbol = self.tree.names.get(o.name)
            node = None if symbol is None else symbol.node
        if isinstance(node, nodes.MypyFile):
            self.mention(PASSED + node.fullname)
        else:
            self._node(node)

    def _member_expr(self, o: nodes.MemberExpr) -> None:
        if not (isinstance(o.expr, nodes.RefExpr) and isinstance(o.expr.node, nodes.MypyFile)):
            self.read(o.expr)
        if o.node is not None and o.node.fullname.partition(".")[0] in self.roots:
            self.resolved += 1
            if isinstance(o.node, nodes.MypyFile):
                self.mention(PASSED + o.node.fullname)
            else:
                self._node(o.node)
        elif o.node is None or not o.node.fullname:
            self._attribute(self.types.get(o.expr), o.name, o.line)

    def _super_expr(self, o: nodes.SuperExpr) -> None:
        self.read_parts(o)
        if o.info is not None:
            self._member(o.info.mro[1:], o.name)

    def _class_pattern(self, o: ClassPattern) -> None:
        self.read_parts(o)
        if isinstance(o.class_ref.node, nodes.TypeInfo):
            for name in o.keyword_keys:
                self._member(o.class_ref.node.mro, name)

    def _cast_expr(self, o: nodes.CastExpr) -> None:
        self.read_parts(o)
        self._types_in(o.type)

    def _type_application(self, o: nodes.TypeApplication) -> None:
        self.read_parts(o)
        for each in o.types:
            self._types_in(each)

    def _call_expr(self, o: nodes.CallExpr) -> None:
        self.read_parts(o)
        called = o.callee.fullname if isinstance(o.callee, nodes.RefExpr) else ""
        if called in _GETTERS and len(o.args) > 1:
            name = o.args[1]
            if isinstance(name, nodes.StrExpr):
                self._attribute(self.types.get(o.args[0]), name.value, o.line)
                self.mention(UNKNOWN + name.value)
            else:
                for info in self._owners(self.types.get(o.args[0])) or ():
                    self.mention(ANY_OF + info.fullname)
        elif called in _NAMING:
            for name in o.args:
                if isinstance(name, nodes.StrExpr):
                    self.mention(UNKNOWN + name.value)

    def _node(self, node: nodes.SymbolNode | None) -> None:
        if node is None:
            return
        if isinstance(node, nodes.FuncBase | nodes.Decorator | nodes.Var):
            self.local_mentions.append((self.within, id(node)))
        if "." in node.fullname:
            self.mention(node.fullname)

    def _attribute(self, owner: Type | None, name: str, line: int) -> None:
        owners = self._owners(owner)
        if owners is None:
            self.unresolved.append((name, line))
            self.mention(UNKNOWN + name)
            return
        self.resolved += 1
        for info in owners:
            self._member(info.mro, name)
            if info.fullname == "types.ModuleType":
                self.mention(UNKNOWN + name)

    def _member(self, mro: Iterable[nodes.TypeInfo], name: str) -> None:
        for base in mro:
            if name in base.names:
                self.mention(f"{base.fullname}.{name}")
                return

    def _type(self, info: nodes.TypeInfo) -> None:
        self.mention(info.fullname)

    def _types_in(self, found: Type) -> None:
        """Notes the classes that a type names."""
        pending = [found]
        while pending:
            one = get_proper_type(pending.pop())
            if isinstance(one, Instance):
                self.mention(ANNOTATED + one.type.fullname)
                pending += one.args
            elif isinstance(one, UnionType | TupleType):
                pending += one.items
            elif isinstance(one, CallableType):
                pending += [*one.arg_types, one.ret_type]
            elif isinstance(one, TypeType):
                pending.append(one.item)

    def _owners(self, found: Type | None) -> list[nodes.TypeInfo] | None:
        """The classes whose attribute is meant; None: the type is unknown."""
        owners: list[nodes.TypeInfo] = []
        pending = [found]
        while pending:
            one = pending.pop()
            one = one if one is None else get_proper_type(one)
            if one is None or (isinstance(one, AnyType) and not _is_of_no_import(one)):
                return None
            owner, more = _owner(one)
            owners += [] if owner is None else [owner]
            pending += more
        return owners


def _is_of_no_import(found: AnyType) -> bool:
    """Returns whether the type is unknown because a package without types has defined it."""
    source = found if found.source_any is None else found.source_any
    return source.type_of_any == TypeOfAny.from_unimported_type


def _owner(one: ProperType) -> tuple[nodes.TypeInfo | None, list[Type]]:
    """The class whose attributes a value of this type has, or types that stand for it."""
    owner: nodes.TypeInfo | None = None
    more: list[Type] = []
    match one:
        case Instance():
            owner = one.type
        case UnionType():
            more = list(one.items)
        case TypeVarType():
            more = [one.upper_bound]
        case TupleType():
            owner = one.partial_fallback.type
        case TypedDictType() | LiteralType():
            owner = one.fallback.type
        case TypeType():
            more = [one.item]
        case CallableType() | Overloaded() if one.is_type_obj():
            owner = one.type_object()
    return owner, more


_READERS: dict[type[nodes.Node], Callable[[_Reader, Any], None]] = {
    nodes.AssignmentStmt: _Reader._assignment_stmt,
    nodes.CallExpr: _Reader._call_expr,
    nodes.CastExpr: _Reader._cast_expr,
    nodes.ClassDef: _Reader._class_def,
    nodes.Decorator: _Reader._decorator,
    nodes.FuncDef: _Reader._func_def,
    nodes.MemberExpr: _Reader._member_expr,
    nodes.NameExpr: _Reader._name_expr,
    nodes.OverloadedFuncDef: _Reader._overloaded_func_def,
    nodes.SuperExpr: _Reader._super_expr,
    nodes.TypeApplication: _Reader._type_application,
    ClassPattern: _Reader._class_pattern,
}


def _assigned(lvalues: Iterable[nodes.Expression]) -> list[str]:
    names = []
    for lvalue in lvalues:
        if isinstance(lvalue, nodes.NameExpr):
            names.append(lvalue.name)
        elif isinstance(lvalue, nodes.TupleExpr | nodes.ListExpr):
            names += _assigned(lvalue.items)
    return names


def _has_fields(info: nodes.TypeInfo) -> bool:
    return (
        "dataclass" in info.metadata
        or "dataclass_tag" in info.metadata
        or info.is_named_tuple
        or info.typeddict_type is not None
        or info.is_protocol
    )


class _Imports(ast.NodeVisitor):
    """Notes imports and annotations, which mypy's tree has only in part."""

    def __init__(self, reader: _Reader, files: Mapping[str, nodes.MypyFile]) -> None:
        self.reader = reader
        self.files = files
        self.within = reader.tree.fullname
        self.in_function = False
        #: Names that functions import, for the annotations in them.
        self.imported: dict[str, str] = {}

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._mention(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            self._mention(whole if whole in self.files else node.module or "")
            self.imported.setdefault(alias.asname or alias.name, whole)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if self.in_function:
            self.generic_visit(node)
        else:
            self._inside(f"{self.within}.{node.name}", node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        middle = ".<locals>." if self.in_function else "."
        before, self.in_function = self.in_function, True
        self._inside(f"{self.within}{middle}{node.name}", node)
        self.in_function = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        name = node.target.id if isinstance(node.target, ast.Name) else ""
        whole = f"{self.within}.{name}"
        within = whole if whole in self.reader.definitions else self.within
        self._annotation(node.annotation, within)
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation is not None:
            self._annotation(node.annotation, self.within)

    def _inside(self, name: str, node: ast.AST) -> None:
        before, self.within = self.within, name
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            self._annotation(node.returns, name)
        self.generic_visit(node)
        self.within = before

    def _mention(self, target: str, within: str = "") -> None:
        self.reader.mention(target, (within or self.within,))

    def _annotation(self, node: ast.expr, within: str) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._annotation(ast.parse(node.value, mode="eval").body, within)
            return
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            return
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            self._annotation(parts[0], within)
            for each in parts[1:]:
                self._values(each, within)
            return
        if isinstance(node, ast.Name | ast.Attribute):
            target = self._resolve(node)
            if target:
                self._mention(ANNOTATED + target, within)
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._annotation(child, within)

    def _values(self, node: ast.AST, within: str) -> None:
        """Expressions beside a type in ``Annotated``."""
        for child in ast.walk(node):
            if isinstance(child, ast.Name | ast.Attribute):
                target = self._resolve(child)
                if target:
                    self._mention(target, within)

    def _resolve(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute):
            before = self._resolve(node.value)
            return f"{before}.{node.attr}" if before else ""
        if isinstance(node, ast.Name):
            symbol = self.reader.tree.names.get(node.id)
            if symbol is not None and symbol.node is not None:
                return symbol.node.fullname
            return self.imported.get(node.id, "")
        return ""
