"""What a version promises: the public names, their parameters and members, as plain data that two versions can be compared by.

`python tests/support/api.py` compares this tree with the last release, `--write` makes this tree the last release.
"""

from __future__ import annotations

import argparse
import ast
import dis
import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args, get_origin, is_typeddict

from reactivex import Observable

import rxdelta as rd
from rxdelta.cli.main import _parser
from rxdelta.relay import Relay

__all__ = [
    "DOORS",
    "RELEASED",
    "broken_since_release",
    "compare",
    "describe",
    "describe_command",
    "describe_things",
    "is_made_by_rxdelta",
    "public",
]

ROOT = Path(__file__).resolve().parents[2]
RELEASED = ROOT / "tests" / "released_api.json"
DOORS = (
    "",
    "errors",
    "events",
    "building",
    "types",
    "providers",
    "requests",
    "wire",
    "asgi",
    "relay",
    "testing.marbles",
    "testing.strategies",
    "testing",
    "cli",
    "core",
)
"""The modules whose `__all__` is public, by their attributes of `rxdelta`. A name belongs to the first that has it."""
OFFERED = frozenset(
    [
        "__aenter__",
        "__aexit__",
        "__aiter__",
        "__anext__",
        "__await__",
        "__bool__",
        "__call__",
        "__contains__",
        "__enter__",
        "__eq__",
        "__exit__",
        "__getitem__",
        "__hash__",
        "__iter__",
        "__len__",
        "__next__",
    ]
)
"""Members that a program uses without their names."""

Entry = dict[str, Any]


def door(name: str) -> ModuleType:
    return importlib.import_module(f"rxdelta.{name}".rstrip("."))


def public() -> dict[str, Any]:
    """Each public thing by its name in the first door that has it."""
    things: dict[str, Any] = {
        "rxdelta.__version__": rd.__version__
    }  # which no import of all names takes along
    known: set[tuple[str, int]] = set()
    for each in DOORS:
        module = door(each)
        for name in module.__all__:
            thing = getattr(module, name)
            if (name, id(thing)) not in known and not isinstance(thing, ModuleType):
                things[".".join(("rxdelta", each, name)).replace("..", ".")] = thing
            known.add((name, id(thing)))
    return things


def describe() -> dict[str, Entry]:
    things = public()
    described = describe_things(things) | {"rxdelta (the command)": _command()}
    for name in DOORS:
        place = f"rxdelta.{name}".rstrip(".")
        elsewhere = [one for one in door(name).__all__ if f"{place}.{one}" not in things]
        described[place] = {"kind": "module", "words": sorted(elsewhere)}
    return described


def _command() -> Entry:
    """The command: a subcommand has its arguments only if it is named."""
    found = describe_command(_parser([]))
    named = {name: describe_command(_parser([name]))["members"][name] for name in found["members"]}
    return {**found, "members": named}


def describe_command(parser: argparse.ArgumentParser) -> Entry:
    """Its options and arguments, the words that these take, and its subcommands as members."""
    words, members = set[str](), dict[str, Entry]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            members |= {name: describe_command(one) for name, one in action.choices.items()}
        else:
            words |= {*(action.option_strings or [action.dest]), *(action.choices or ())}
    return {"kind": "command", "words": sorted(words), "members": members}


def is_made_by_rxdelta(cls: type) -> bool:
    """Whether operators and doors make its objects, and no program: its constructor isn't public."""
    return issubclass(cls, (Observable, rd.building.Sink, rd.types.Reply, rd.types.BlockingReply, Relay))


def broken_since_release() -> list[str]:
    """The broken promises; none before the first release."""
    return (
        compare(json.loads(RELEASED.read_text("utf-8"))["names"], describe())[0] if RELEASED.exists() else []
    )


def describe_things(things: Mapping[str, Any]) -> dict[str, Entry]:
    names = {thing: name for name, thing in reversed(things.items()) if inspect.isclass(thing)}
    return {name: _thing(name, thing, names) for name, thing in sorted(things.items())}


def _thing(name: str, thing: Any, names: Mapping[type, str]) -> Entry:
    if inspect.isclass(thing):
        return _class(thing, names) if names[thing] == name else {"kind": f"alias of {names[thing]}"}
    if inspect.isroutine(thing):
        return _function(thing, "function")
    words = {*_words_of(thing), *(one.__name__ for one in get_args(thing) if inspect.isclass(one))}
    if isinstance(thing, (tuple, frozenset, dict)):
        words |= {one if isinstance(one, str) else getattr(one, "__name__", "") for one in thing} - {""}
    return {"kind": "value"} | ({"words": sorted(words)} if words else {})


def _class(cls: type, names: Mapping[type, str]) -> Entry:
    package = cls.__module__.partition(".")[0]
    ours = [one for one in cls.__mro__ if one.__module__.partition(".")[0] == package]
    bases = [
        one for one in cls.__mro__[1:-1] if one in names or one.__module__ == "builtins" or one is Observable
    ]
    entry: Entry = {
        "kind": "class",
        "bases": [names.get(one, one.__name__) for one in bases],
        "members": _members(ours),
    }
    if getattr(cls, "_is_protocol", False):
        entry["kind"] = "protocol"
    elif not is_typeddict(cls) and not is_made_by_rxdelta(cls):
        entry["parameters"] = _parameters(cls)
    return entry


def _members(ours: list[type]) -> dict[str, Entry]:
    """Methods and properties, fields, and the attributes that the docstring promises and that are there.

    What never returns is no offer: it only says what to use.
    """
    found: dict[str, Entry] = {}
    for one in reversed(ours):
        annotations = inspect.get_annotations(one)
        documented = [*_documented(one)]
        there = _set_by_init(one).union(*({*inspect.get_annotations(cls), *vars(cls)} for cls in ours))
        for name in (*(name for name in documented if name in there), *annotations, *vars(one)):
            member = inspect.getattr_static(one, name, None)
            if name.startswith("_") and (name not in OFFERED or member is None):
                continue
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function):
                found[name] = _function(function, "method")
                if isinstance(member, (staticmethod, classmethod)):
                    found[name]["kind"] += " of the class"
                if not isinstance(member, staticmethod):
                    found[name]["parameters"] = found[name]["parameters"][1:]
                continue
            getter = getattr(member, "fget", None) or getattr(member, "func", None)
            annotation = getattr(getter, "__annotations__", {}).get("return", annotations.get(name, ""))
            kind = "attribute"
            if is_typeddict(one):
                kind = "key" if name in one.__required_keys__ else "optional key"
            found[name] = {"kind": kind} | _type(annotation, one.__module__)
    return {name: entry for name, entry in sorted(found.items()) if entry.get("type") != "NoReturn"}


def _documented(cls: type) -> Iterator[str]:
    section = re.search(
        r"^Attributes:\n((?:(?: .*)?\n?)*)", inspect.cleandoc(cls.__doc__ or ""), re.MULTILINE
    )
    for names in re.findall(r"^    (\w+(?:, \w+)*):", section[1] if section else "", re.MULTILINE):
        yield from names.split(", ")


def _set_by_init(cls: type) -> set[str]:
    code = getattr(vars(cls).get("__init__"), "__code__", None)
    return {one.argval for one in dis.get_instructions(code) if one.opname == "STORE_ATTR"} if code else set()


def _function(function: Any, kind: str) -> Entry:
    """A function whose result must be awaited is of another kind."""
    returns = getattr(function, "__annotations__", {}).get("return", "")
    return {
        "kind": f"async {kind}" if inspect.iscoroutinefunction(function) else kind,
        "parameters": _parameters(function),
    } | _type(returns, function.__module__)


def _type(annotation: Any, module: str) -> Entry:
    """An annotation as text, and its literals."""
    if annotation == "":
        return {}
    annotation = getattr(annotation, "__forward_arg__", annotation)  # as a TypedDict keeps it
    words = sorted(_words(annotation, module))
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return {"type": text} | ({"words": words} if words else {})


def _parameters(function: Any) -> list[Entry]:
    try:
        signature = inspect.signature(function)
    except ValueError:  # of C, such as that of `Exception`
        return []
    made = []
    for one in signature.parameters.values():
        entry: Entry = {"name": one.name, "kind": one.kind.description}
        if one.default is not one.empty:
            entry["default"] = _default(one.default)
        if one.annotation is not one.empty:
            entry |= _type(one.annotation, function.__module__)
        made.append(entry)
    return made


def _default(value: Any) -> str:
    """A default as text that is the same in each run; an object of ours by its type, which may get more fields."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, tuple)):
        return repr(value)
    return getattr(value, "__name__", type(value).__name__)


# Literals: the words that a parameter takes, or that an attribute may have.


def _words_of(alias: Any) -> Iterator[str]:
    if get_origin(alias) is Literal:
        yield from (word for word in get_args(alias) if isinstance(word, str))
    elif isinstance(alias, TypeVar):
        yield from _words_of(alias.__bound__)
    elif not inspect.isclass(alias):
        for part in get_args(alias):
            yield from _words_of(part)


def _words(annotation: Any, module: str) -> set[str]:
    if not isinstance(annotation, str):
        return {*_words_of(annotation)}
    found: set[str] = set()
    for node in ast.walk(ast.parse(annotation, mode="eval")):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            found |= {
                one.value
                for one in ast.walk(node.slice)
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
        elif isinstance(node, ast.Name):
            found |= {*_words_of(vars(sys.modules[module]).get(node.id, _aliases().get(node.id)))}
    return found


def _aliases() -> dict[str, Any]:
    """The aliases that have words, for an annotation whose module imports the alias for type checkers only."""
    if not _ALIASES:
        for _, name, _ in pkgutil.walk_packages(rd.__path__, "rxdelta."):
            if not name.endswith("__main__"):
                for one, thing in vars(importlib.import_module(name)).items():
                    if not inspect.isclass(thing) and any(_words_of(thing)):
                        _ALIASES.setdefault(one, thing)
    return _ALIASES


_ALIASES: dict[str, Any] = {}


# Comparing.


def compare(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> tuple[list[str], list[str]]:
    """What breaks a program that was written for `old`; and what is new, or of another type, which people have to judge."""
    broken: list[str] = []
    added = [f"{name}: new" for name in new if name not in old]
    for name, was in old.items():
        now = new.get(name) or _described_elsewhere(name, new)
        if now is None:
            broken.append(f"{name}: removed")
        elif now["kind"] != was["kind"]:
            broken.append(f"{name}: was {was['kind']}, is {now['kind']}")
        else:
            _compare(name, was, now, broken, added)
    return broken, added


def _described_elsewhere(name: str, new: Mapping[str, Entry]) -> Entry | None:
    """What a name of a module means that an earlier module now has, too."""
    module, _, last = name.rpartition(".")
    is_listed = last in new.get(module, {}).get("words", ())
    return next((new[one] for one in new if is_listed and one.rpartition(".")[2] == last), None)


def _compare(name: str, was: Entry, now: Entry, broken: list[str], added: list[str]) -> None:
    broken += [f"{name}: no longer a {base}" for base in was.get("bases", []) if base not in now["bases"]]
    _compare_types(name, was, now, broken, added)
    if "parameters" in was:
        _compare_parameters(name, was["parameters"], now.get("parameters", []), broken, added)
    if "members" in was:
        members = [{f"{name}.{one}": entry for one, entry in each["members"].items()} for each in (was, now)]
        worse, more = compare(*members)
        broken += worse
        # Whoever implements a protocol lacks its new member.
        (broken if was["kind"] == "protocol" else added).extend(more)


def _compare_types(name: str, was: Entry, now: Entry, broken: list[str], added: list[str]) -> None:
    if was.get("type", "") != now.get("type", ""):
        added.append(f"{name}: was {was.get('type', 'untyped')}, is {now.get('type', 'untyped')}")
    before, after = was.get("words", []), now.get("words", [])
    broken += [f"{name}: {word!r} removed" for word in before if word not in after]
    added += [f"{name}: {word!r} new" for word in after if word not in before and before]


def _compare_parameters(
    name: str, was: list[Entry], now: list[Entry], broken: list[str], added: list[str]
) -> None:
    after = {one["name"]: one for one in now}
    before = {one["name"] for one in was}
    for place, old in enumerate(was):
        new, title = after.get(old["name"]), f"{name}({old['name']})"
        if new is None:
            broken.append(f"{title}: removed")
            continue
        if new["kind"] != old["kind"]:
            broken.append(f"{title}: was {old['kind']}, is {new['kind']}")
        elif "positional" in old["kind"] and now.index(new) != place:
            broken.append(f"{title}: moved")
        if "default" in old and new.get("default") != old["default"]:
            broken.append(f"{title}: the default was {old['default']}, is {new.get('default', 'missing')}")
        _compare_types(title, old, new, broken, added)
    for new in now:
        if new["name"] not in before:
            optional = "default" in new or "variadic" in new["kind"]
            (added if optional else broken).append(
                f"{name}({new['name']}): new{'' if optional else ', and required'}"
            )


def write() -> None:
    lines = (f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in describe().items())
    names = ",\n".join(lines)
    RELEASED.write_text(f'{{"version": {json.dumps(rd.__version__)}, "names": {{\n{names}\n}}}}\n', "utf-8")


def main(arguments: Iterable[str]) -> int:
    if "--write" in arguments:
        write()
        return 0
    if not RELEASED.exists():
        print("nothing has been released")
        return 0
    released = json.loads(RELEASED.read_text("utf-8"))
    broken, added = compare(released["names"], describe())
    print(
        f"since {released['version']}:",
        *(f"+ {one}" for one in added),
        *(f"! {one}" for one in broken),
        sep="\n",
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
