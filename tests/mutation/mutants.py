"""The mutants of a file: each is one small change of its syntax tree.

No mutant changes what no test should judge: annotations, docstrings, the texts of errors, of log lines and of `__repr__`. A
string of three words is taken for a text of an error, wherever it stands.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ROOT", "Default", "Mutant", "mutants_of"]

ROOT = Path(__file__).resolve().parents[2]
CONTEXT = 120  # characters of source that say where a mutant is

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Pow: ast.Mult,
}
SENTENCE = re.compile(r"[A-Za-z]+[',]? [A-Za-z]+[',]? [A-Za-z]+")
TEXTS = ("Error", "Exception", "Warning", "StreamInterrupted", "warn")  # calls whose strings are for people
TYPES = {"TypeVar", "ParamSpec", "NewType", "cast", "Literal"}
STATEMENTS_OF_TYPES = {"__all__", "__slots__", "__match_args__"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Default:
    """The default argument of a function that has no decorators, and its new value."""

    function: ast.FunctionDef | ast.AsyncFunctionDef
    parameter: str
    value: object


@dataclass(frozen=True)
class Mutant:
    """One change.

    `function`, `source`, `change` and `number` name it for as long as the function stays as it is; a number above 0 is that of a
    repetition. `edit` makes the change in `tree`.
    """

    path: str
    function: str
    source: str
    change: str
    lines: range
    around: range
    """The lines of the statement, if the interpreter names none for the changed part."""
    tree: ast.Module = field(repr=False, compare=False)
    edit: Callable[[], None] = field(repr=False, compare=False)
    at_import: bool = False
    """Whether the changed code runs while the module is imported."""
    names: frozenset[str] = frozenset()
    """For what runs at import: the names that the statement gives values to."""
    default: Default | None = field(default=None, repr=False, compare=False)
    """For a default argument that can be set on the function itself."""
    number: int = 0

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.path, self.function, self.source, self.change, self.number

    def __str__(self) -> str:
        return f"{self.path} {self.function or '<module>'}: {self.source}   [{self.change}]"


def mutants_of(path: str, tree: ast.Module) -> list[Mutant]:
    """All mutants of a file, in the order of its text. They edit this tree: only one of them may be made in it."""
    found: list[Mutant] = []
    seen: dict[tuple[str, str, str, str, int], int] = {}
    for mutant in _Finder(path, tree).visit_module():
        number = seen.get(mutant.key, 0)
        seen[mutant.key] = number + 1
        found.append(replace(mutant, number=number))
    return found


@dataclass(frozen=True)
class _Place:
    """Where a node is: its ancestors, nearest last, and what the walk knows of them."""

    function: tuple[str, ...] = ()
    in_function: bool = False
    ancestors: tuple[ast.AST, ...] = ()
    texts_count: bool = True
    names: frozenset[str] = frozenset()


class _Finder:
    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path, self.tree = path, tree

    def visit_module(self) -> Iterator[Mutant]:
        yield from self._walk(self.tree, _Place())

    def _walk(self, node: ast.AST, place: _Place) -> Iterator[Mutant]:
        inside = self._inside(node, place)
        for name, value in ast.iter_fields(node):
            if _is_for_people_or_types(node, name, place):
                continue
            # Decorators and default arguments run where the function is defined.
            where = inside
            if isinstance(node, FUNCTIONS) and name in ("decorator_list", "args"):
                where = replace(inside, in_function=place.in_function)
            children = value if isinstance(value, list) else [value]
            for index, child in enumerate(children):
                if isinstance(child, ast.AST) and not _is_skipped(child):

                    def put(
                        new: ast.AST,
                        index: int = index,
                        name: str = name,
                        many: bool = isinstance(value, list),
                    ) -> None:
                        if many:
                            getattr(node, name)[index] = new
                        else:
                            setattr(node, name, new)

                    yield from self._of(child, put, where, (node, name), index)
                    yield from self._walk(child, where)

    def _inside(self, node: ast.AST, place: _Place) -> _Place:
        function, in_function, texts, names = (
            place.function,
            place.in_function,
            place.texts_count,
            place.names,
        )
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = (*function, node.name)
        if isinstance(node, FUNCTIONS):
            in_function = True
        if isinstance(node, ast.ClassDef):
            names = frozenset({node.name})
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and not names:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = frozenset(target.id for target in targets if isinstance(target, ast.Name))
        if _speaks_to_people(node):
            texts = False
        return _Place(function, in_function, (*place.ancestors, node), texts, names)

    def _of(
        self,
        node: ast.AST,
        put: Callable[[ast.AST], None],
        place: _Place,
        parent: tuple[ast.AST, str],
        index: int,
    ) -> Iterator[Mutant]:
        for new, change in _changes(node, place, parent):
            ast.copy_location(new, node)
            ast.fix_missing_locations(new)
            first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
            default = None if place.in_function else _default(new, index, parent, place.ancestors)
            if default is not None:
                body = default.function.body
                first, last = body[0].lineno, body[-1].end_lineno or body[-1].lineno
            yield Mutant(
                self.path,
                ".".join(place.function),
                _context(node, place.ancestors),
                change,
                range(first, last + 1),
                _statement(node, place.ancestors),
                self.tree,
                lambda new=new: put(new),  # type: ignore[misc]
                at_import=not place.in_function and default is None,
                names=place.names,
                default=default,
            )


def _statement(node: ast.AST, ancestors: tuple[ast.AST, ...]) -> range:
    """The lines of a node's statement; of one with a body, those down to the node."""
    statement = next((one for one in (node, *reversed(ancestors)) if isinstance(one, ast.stmt)), None)
    if statement is None:
        return range(0)
    last = node if hasattr(statement, "body") else statement
    return range(statement.lineno, getattr(last, "end_lineno", statement.lineno) + 1)


def _default(
    new: ast.AST, index: int, parent: tuple[ast.AST, str], ancestors: tuple[ast.AST, ...]
) -> Default | None:
    arguments, name = parent
    if not isinstance(arguments, ast.arguments) or not isinstance(new, ast.Constant):
        return None
    function = ancestors[-2]
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or function.decorator_list:
        return None
    if name == "kw_defaults":
        return Default(function, arguments.kwonlyargs[index].arg, new.value)
    positional = [*arguments.posonlyargs, *arguments.args]
    return Default(function, positional[index - len(arguments.defaults)].arg, new.value)


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, or `...`
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id in STATEMENTS_OF_TYPES for target in targets):
            return True
        alias = isinstance(node, ast.AnnAssign) and "TypeAlias" in ast.unparse(node.annotation)
        return alias or (isinstance(node.value, ast.Subscript) and _is_type(node.value))
    return isinstance(node, ast.Call) and _name(node.func) in TYPES - {"cast"}


def _is_type(node: ast.Subscript) -> bool:
    return _name(node.value) in (
        "Literal",
        "Union",
        "Callable",
        "Mapping",
        "Sequence",
        "dict",
        "tuple",
        "Annotated",
    )


def _is_for_people_or_types(node: ast.AST, name: str, place: _Place) -> bool:
    if name in ("annotation", "returns", "type_params", "bases"):
        return True
    return name == "args" and isinstance(node, ast.Call) and _name(node.func) == "cast"


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _speaks_to_people(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.name in ("__repr__", "__str__", "__rich_repr__")
    if isinstance(node, ast.Call):
        logs = isinstance(node.func, ast.Attribute) and _name(node.func.value).upper() in (
            "_LOG",
            "LOG",
            "_LOGGER",
        )
        return logs or _name(node.func).endswith(TEXTS)
    return False


def _context(node: ast.AST, ancestors: tuple[ast.AST, ...]) -> str:
    """The code around a node, as much of its statement as is short."""
    text = _first_line(node)
    for ancestor in reversed(ancestors):
        if isinstance(node, ast.stmt) or not isinstance(ancestor, (ast.expr, ast.stmt, ast.keyword)):
            break
        longer = _first_line(ancestor)
        if len(longer) > CONTEXT:
            break
        text = longer
        node = ancestor
    return text


def _first_line(node: ast.AST) -> str:
    """Of a statement with a body, its head."""
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        node = type(node)(**dict(ast.iter_fields(node)))
        node.body = [ast.Expr(ast.Constant(...))]  # type: ignore[attr-defined]
        for rest in ("orelse", "finalbody", "handlers", "decorator_list"):
            if hasattr(node, rest):
                setattr(node, rest, [])
        return ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
    return ast.unparse(node)


def _changes(node: ast.AST, place: _Place, parent: tuple[ast.AST, str]) -> Iterator[tuple[ast.AST, str]]:
    """What may stand in the place of a node, with a description."""
    old = ""

    def to(new: Any) -> tuple[ast.AST, str]:
        return new, f"{old or _first_line(node)} -> {_first_line(new) if new else 'nothing'}"

    around, name = parent
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            if other := COMPARED.get(type(operator)):
                yield to(
                    ast.Compare(
                        node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators
                    )
                )
    elif isinstance(node, ast.BoolOp):
        yield to(ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield to(node.operand)
    elif isinstance(node, ast.BinOp) and (swap := COMPUTED.get(type(node.op))):
        if not (isinstance(node.left, (ast.Constant, ast.JoinedStr)) and _is_text(node.left)):
            yield to(ast.BinOp(node.left, swap(), node.right))
    elif isinstance(node, ast.AugAssign) and (swap := COMPUTED.get(type(node.op))):
        yield to(ast.AugAssign(node.target, swap(), node.value))
    elif isinstance(node, ast.Constant) and not isinstance(around, ast.FormattedValue):
        yield from (to(new) for new in _other_constants(node, place, around))
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield to(ast.Return(ast.Constant(None)))
    if _is_removable(node):
        yield ast.Pass(), f"without {_first_line(node)}"
    negatable = (name == "test" and isinstance(around, (ast.If, ast.While, ast.IfExp))) or name == "ifs"
    if negatable and isinstance(node, ast.expr) and not _is_negated_otherwise(node):
        yield to(ast.UnaryOp(ast.Not(), node))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _other_constants(node: ast.Constant, place: _Place, around: ast.AST) -> Iterator[ast.Constant]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield ast.Constant(value + 1)
    elif isinstance(value, (str, bytes)):
        if place.texts_count and not SENTENCE.search(str(value)):
            yield ast.Constant(f"XX{value}" if isinstance(value, str) else b"XX" + value)
    elif value is None and not isinstance(around, (ast.Compare, ast.Return, ast.MatchSingleton)):
        yield ast.Constant("")


def _is_removable(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        return isinstance(value, ast.Call)
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in targets)
    return isinstance(node, (ast.Raise, ast.Continue, ast.Break, ast.Delete))


def _is_negated_otherwise(node: ast.AST) -> bool:
    """Whether the change of its operator negates a condition."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn))
    return (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)) or isinstance(node, ast.Constant)
