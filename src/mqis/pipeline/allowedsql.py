"""The check of a query before Spark analyses it: an allow-list over the parsed query.

Spark's parser makes a tree of Java objects of a query. Every object in that tree has to be of a
class that is named here, every function and every table has to be one that is named here or made
for the query; anything else is refused by its name, also what a later Spark may add. The text of
the query, and of the plan, which Spark shortens, decides nothing.

The parsed query is checked, not the analysed one: to analyse a query, Spark evaluates parts of it.
Nothing can hide in a field of a node, since all fields of the nodes are walked through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from mqis.wire.errors import MqisError

#: The most objects of a parsed query; each costs a call of Java.
MOST_OBJECTS = 50_000

_CATALYST = "org.apache.spark.sql.catalyst."


def _classes(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{_CATALYST}{package}{name}" for name in names.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Nodes and expressions whose fields are walked through.
_NODES = frozenset((
    *_classes(
        "plans.logical.",
        "Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LimitAll "
        "LocalLimit Offset OneRowRelation OneRowRelation$ Pivot Project RepartitionByExpression "
        "Sample Sort SubqueryAlias Union Unpivot WithWindowDefinition",
    ),
    *_classes(
        "analysis.",
        "MultiAlias UnresolvedAlias UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator "
        "UnresolvedHaving UnresolvedInlineTable UnresolvedRelation UnresolvedStarExceptOrReplace "
        "UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction",
    ),
    *_classes(
        "expressions.",
        "Add Alias And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor CaseWhen Cast Coalesce Collate "
        "Concat CreateNamedStruct Cube CurrentRow$ Divide EqualNullSafe EqualTo Exists GreaterThan "
        "GreaterThanOrEqual GroupingSets ILike In InSubquery IntegralDivide IsNotNull IsNull "
        "LambdaFunction LateralSubquery LessThan LessThanOrEqual Like LikeAll LikeAny ListQuery "
        "Multiply Not NotLikeAll NotLikeAny Or Overlay PipeExpression RLike Remainder Rollup "
        "ScalarSubquery ShiftLeft ShiftRight ShiftRightUnsigned SortOrder SpecifiedWindowFrame "
        "StringLocate StringTrim StringTrimLeft StringTrimRight Substring Subtract TimestampAdd "
        "TimestampDiff TryCast UnaryMinus UnaryPositive UnboundedFollowing$ UnboundedPreceding$ "
        "UnresolvedCollation UnresolvedWindowExpression UnspecifiedFrame$ WindowExpression "
        "WindowSpecDefinition aggregate.AggregateExpression aggregate.AnyValue aggregate.First "
        "aggregate.Last",
    ),
    *_classes("", "FunctionIdentifier"),
))  # fmt: skip

#: Objects without nodes in them: names, types, values that the parser has made of literals.
_LEAVES = frozenset((
    *_classes("", "AliasIdentifier"),
    *_classes("analysis.", "UnresolvedAttribute UnresolvedOrdinal UnresolvedRegex UnresolvedStar"),
    *_classes(
        "expressions.",
        "Ascending$ AttributeReference CurrentDate CurrentTimestamp Descending$ ExprId Literal "
        "NullsFirst$ NullsLast$ NumericEvalContext PipeOperator RangeFrame$ RowFrame$ "
        "UnresolvedNamedLambdaVariable WindowSpecReference aggregate.Complete$",
    ),
    *_classes("plans.", "Cross$ FullOuter$ Inner$ LeftAnti$ LeftOuter$ LeftSemi$ RightOuter$"),
    *_classes("plans.", "NaturalJoin UsingJoin"),
    *_classes("plans.logical.", "JoinHint LocalRelation SampleMethod$Bernoulli$"),
    "java.util.UUID",
    "scala.Enumeration$Val",
    "scala.None$",
    "org.apache.spark.sql.util.CaseInsensitiveStringMap",
))  # fmt: skip

_SEQUENCES = "scala.collection.immutable."
_WRAPPERS = ("scala.Some", "scala.Tuple")
_DATA_TYPES = "org.apache.spark.sql.types."

#: Functions that compute their result from their arguments, the time or chance, and nothing else.
#: Left out: what calls Java (java_method, reflect, try_reflect), reads files (from_avro,
#: from_protobuf), parses XML, tells about the computer or the session (input_file_name, user,
#: version, current_database), and what only programs need (sketches, vectors, geometry).
FUNCTIONS = _words(
    """
    abs acos acosh add_months aggregate any any_value approx_count_distinct approx_percentile array
    array_agg array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh
    assert_true atan atan2 atanh avg base64 between bigint bin binary bit_and bit_count bit_get
    bit_length bit_or bit_xor bool_and bool_or boolean bround btrim cardinality cast cbrt ceil
    ceiling char char_length character_length chr coalesce collect_list collect_set concat concat_ws
    contains conv convert_timezone corr cos cosh cot count count_if covar_pop covar_samp crc32 csc
    cube cume_dist curdate current_date current_time current_timestamp current_timezone date
    date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
    datediff datepart day dayname dayofmonth dayofweek dayofyear decimal decode degrees dense_rank
    div double e element_at elt encode endswith equal_null every exists exp explode explode_outer
    expm1 extract factorial filter find_in_set first first_value flatten float floor forall
    format_number format_string from_base32 from_csv from_json from_unixtime from_utc_timestamp get
    get_json_object getbit greatest grouping grouping_id hash hex histogram_numeric hour hypot if
    ifnull ilike initcap inline inline_outer instr int is_valid_utf8 is_variant_null isnan isnotnull
    isnull jaro_winkler_similarity json_array_length json_object_keys json_tuple kurtosis lag last
    last_day last_value lcase lead least left len length levenshtein like listagg ln localtimestamp
    locate log log10 log1p log2 lower lpad ltrim make_date make_dt_interval make_interval make_time
    make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval map map_concat
    map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values
    map_zip_with mask max max_by md5 mean median min min_by minute mod mode
    monotonically_increasing_id month monthname months_between named_struct nanvl negative next_day
    not now nth_value ntile nullif nullifzero nvl nvl2 octet_length overlay parse_json parse_url
    percent_rank percentile percentile_approx percentile_cont percentile_disc pi pmod posexplode
    posexplode_outer position positive pow power printf quarter quote radians raise_error rand randn
    random randstr rank reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike rollup round
    row_number rpad rtrim schema_of_csv schema_of_json schema_of_variant sec second sentences
    sequence session_window sha sha1 sha2 shiftleft shiftright shiftrightunsigned shuffle sign
    signum sin sinh size skewness slice smallint some sort_array soundex space split split_part sqrt
    stack startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr
    substring substring_index sum tan tanh time time_bucket time_diff time_trunc timestamp
    timestamp_micros timestamp_millis timestamp_seconds tinyint to_base32 to_binary to_char to_csv
    to_date to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp to_varchar transform transform_keys transform_values
    translate trim trunc try_add try_avg try_divide try_element_at try_make_interval try_mod
    try_multiply try_parse_json try_parse_url try_subtract try_sum try_to_binary try_to_date
    try_to_number try_to_time try_to_timestamp try_url_decode try_variant_get typeof ucase unbase64
    unhex uniform unix_date unix_micros unix_millis unix_seconds unix_timestamp upper url_decode
    url_encode uuid var_pop var_samp variance variant_get weekday weekofyear when width_bucket
    window window_time xxhash64 year zeroifnull zip_with
    """
)
#: Functions that stand in the place of a table, or behind LATERAL VIEW.
TABLE_FUNCTIONS = _words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack "
    "variant_explode variant_explode_outer"
)


#: An object of the parsed query, and the names of the tables that it may use.
_Part = tuple[Any, frozenset[str]]


class UnknownTable(MqisError):
    """The query names a table that is not there, or a file, or a table of another schema."""


def check_parsed(plan: Any, tables: Collection[str]) -> None:
    """Refuses a parsed query, a Java object, that has anything in it which is not allowed.

    ``tables`` are the names, in small letters, of the views that were made for the query.
    """
    waiting: list[_Part] = [(plan, frozenset(tables))]
    seen = 0
    while waiting:
        found, known = waiting.pop()
        if not hasattr(found, "getClass"):  # a number or a text
            continue
        seen += 1
        if seen > MOST_OBJECTS:
            raise MqisError(f"the query is too long: it has more than {MOST_OBJECTS:,} parts")
        name = str(found.getClass().getName())
        if name == _WITH:
            waiting += _with_parts(found, known)
        elif name.startswith(_SEQUENCES):
            waiting += ((part, known) for part in _each(found.iterator()))
        elif name in _NODES or name.startswith(_WRAPPERS):
            if name == _RELATION:
                _check_table(found, known)
            elif name in _NAMED:
                _NAMED[name](found)
            waiting += ((part, known) for part in _each(found.productIterator()))
        elif name not in _LEAVES and not name.startswith(_DATA_TYPES):
            raise _refused(name.removesuffix("$").rpartition(".")[2])


def _with_parts(node: Any, known: frozenset[str]) -> Iterator[_Part]:
    """WITH: each query and the last one may use the names of those before it."""
    recursive = bool(node.allowRecursion())
    for relation in _each(node.cteRelations().iterator()):
        named = known | {str(relation._1()).lower()}
        yield relation._2(), named if recursive else known
        known = named
    yield node.child(), known


def _each(iterator: Any) -> Iterator[Any]:
    while iterator.hasNext():
        yield iterator.next()


def _parts(names: Any) -> tuple[str, ...]:
    return tuple(str(name).lower() for name in _each(names.iterator()))


def _check_function(function: Any) -> None:
    parts = _parts(function.nameParts())
    if len(parts) != 1 or parts[0] not in FUNCTIONS:
        raise _refused(f"the function {'.'.join(parts)}")


def _check_table_function(function: Any) -> None:
    parts = _parts(function.name())
    if len(parts) != 1 or parts[0] not in TABLE_FUNCTIONS:
        raise _refused(f"the table function {'.'.join(parts)}")


def _check_generator(generator: Any) -> None:
    identifier = generator.name()
    name = str(identifier.unquotedString()).lower()
    if name not in TABLE_FUNCTIONS:
        raise _refused(f"the table function {name}")


def _check_table(relation: Any, known: frozenset[str]) -> None:
    parts = _parts(relation.multipartIdentifier())
    if len(parts) != 1 or parts[0] not in known:
        raise UnknownTable(".".join(parts))
    if not relation.options().isEmpty():
        raise _refused("an option of a table")


_RELATION = f"{_CATALYST}analysis.UnresolvedRelation"
_WITH = f"{_CATALYST}plans.logical.UnresolvedWith"
_NAMED: dict[str, Callable[[Any], None]] = {
    f"{_CATALYST}analysis.UnresolvedFunction": _check_function,
    f"{_CATALYST}analysis.UnresolvedTableValuedFunction": _check_table_function,
    f"{_CATALYST}analysis.UnresolvedGenerator": _check_generator,
}


def _refused(what: str) -> MqisError:
    return MqisError(
        f"a query here only reads tables, with functions that compute; {what} is not allowed"
    )
