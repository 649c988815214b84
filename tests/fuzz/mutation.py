"""Inputs made from other inputs: of trees of JSON, which keep their shape, and of text."""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import rxdelta as rd

__all__ = ["Mutator", "grown", "lines", "values", "words_of"]

Bytes = Callable[[bytes, int], bytes]
PACKAGE = Path(rd.__file__).parent
LEAVES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 1.5, 1e400, -0.0, 2**31, 2**53, 2**64, -(2**63), 10**400, "", " ", "0", "1", "x", "null",
    "\ud800", "\udc00", "\u0000", "\u001b[2J", "é\u0301", "👩‍👩‍👧", "a" * 300, "{", '{"a": 1', '{"a": 1}', "[1]", "data:,x", "https://x/y",
    "aGk=", "call_1", "__class__", "__proto__", [], {}, [[]], [None], [{}], {"": None}, {"type": None}, {"type": "text", "text": "x"},
    {"a": {"a": {"a": []}}},
]  # fmt: skip
CHARACTERS = ' \t\r\n\0\x1b"\\{}[]():,.-+eE0123456789_abzé\u2028\ufeff\ufffd😀'


def values(data: bytes) -> list[Any]:
    """The JSON documents of these lines. A line that is none is left out."""
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def lines(documents: Iterable[Any]) -> bytes:
    return b"\n".join(json.dumps(one).encode() for one in documents)


@cache
def words_of(*folders: str) -> tuple[str, ...]:
    """The words that the code in these folders or files of the package compares with: names of fields and types."""
    found: set[str] = set()
    for folder in folders:
        place = PACKAGE / folder
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            found.update(
                one
                for one in constants
                if isinstance(one, str) and 0 < len(one) < 40 and one.isprintable() and " " not in one
            )
    return tuple(sorted(found))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a value: the object or list, and the name or index."""
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        for name in [*inside] if isinstance(inside, dict) else range(len(inside)):
            yield inside, name
            if isinstance(inside[name], (dict, list)):
                waiting.append(inside[name])


class Mutator:
    """Makes an input of another one. The same seed makes the same one.

    Args:
        words: What the readers of these inputs know.
        pool: Other inputs, of which parts are taken.
        changed: Changes bytes, as the fuzzer does that knows what the program compared them with.
        is_json: Whether the inputs are lines of JSON.
    """

    def __init__(
        self,
        words: Sequence[str],
        pool: Sequence[bytes],
        *,
        changed: Bytes | None = None,
        is_json: bool = True,
    ) -> None:
        self._words = words or ("x",)
        self._pool = [values(one) for one in pool] if is_json else [*pool]
        self._changed = changed
        self._is_json = is_json

    def __call__(self, data: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if not self._is_json:
            return self._text(data, chance)[:most]
        documents = values(data)
        if not documents or chance.random() < 0.01:
            documents = copy.deepcopy(chance.choice(self._pool)) if self._pool else [{}]
        for _ in range(chance.choice([1, 1, 1, 2, 3, 5, 9])):
            self._change(documents, chance)
        made = lines(documents)
        while len(made) > most and len(documents) > 1:
            del documents[chance.randrange(len(documents))]
            made = lines(documents)
        return made if len(made) <= most else data[:most]

    def _change(self, documents: list[Any], chance: random.Random) -> None:
        found = [*places(documents)]
        if not found:
            documents.append({})
            return
        where, name = chance.choice(found)
        value, how = where[name], chance.randrange(16)
        if how == 0:
            where[name] = copy.deepcopy(chance.choice(LEAVES))
        elif how == 1:
            where[name] = chance.choice(self._words)
        elif how == 2:
            there, other = chance.choice(found)
            where[name] = copy.deepcopy(there[other])
        elif how == 3:
            where.pop(name)
        elif how == 4 and isinstance(where, dict):
            where[chance.choice(self._words)] = where.pop(name)
        elif how in (4, 5) and isinstance(where, list):
            where.insert(chance.randrange(len(where) + 1), copy.deepcopy(value))
        elif how == 5:
            where[chance.choice(self._words)] = copy.deepcopy(
                chance.choice([value, *LEAVES, chance.choice(self._words)])
            )
        elif how == 6:
            where[name] = chance.choice(
                [[value], {chance.choice(self._words): value}, [value, value], json.dumps(value)]
            )
        elif how == 7 and self._pool:
            other_documents = chance.choice(self._pool)
            others = [*places(other_documents)]
            if others:
                there, other = chance.choice([pair for pair in others if pair[1] == name] or others)
                where[name] = copy.deepcopy(there[other])
        elif how == 8 and self._pool:
            others_of = chance.choice(self._pool)
            if others_of:
                documents.insert(
                    chance.randrange(len(documents) + 1), copy.deepcopy(chance.choice(others_of))
                )
        elif how == 9:
            at, other = chance.randrange(len(documents)), chance.randrange(len(documents))
            documents[at], documents[other] = documents[other], documents[at]
        elif how == 10:
            documents.insert(chance.randrange(len(documents) + 1), copy.deepcopy(chance.choice(documents)))
        elif how == 11:
            del documents[chance.randrange(len(documents)) :][chance.randrange(3) :]
        else:
            self._change_leaf(found, chance)

    def _change_leaf(self, found: list[tuple[Any, Any]], chance: random.Random) -> None:
        leaves = [pair for pair in found if not isinstance(pair[0][pair[1]], (dict, list))]
        if not leaves:
            return
        where, name = chance.choice(leaves)
        value = where[name]
        if isinstance(value, bool) or value is None:
            where[name] = chance.choice(LEAVES)
        elif isinstance(value, (int, float)):
            where[name] = chance.choice(
                [lambda: value + 1, lambda: value - 1, lambda: -value, lambda: str(value), lambda: value * 2]
            )()
        elif chance.random() < 0.5 and self._changed is not None:
            where[name] = self._changed(value.encode("utf-8", "replace"), len(value) + 20).decode(
                "utf-8", "replace"
            )
        else:
            where[name] = self._change_text(value, chance)

    def _change_text(self, text: str, chance: random.Random) -> str:
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        return chance.choice(
            [
                lambda: text[:at],
                lambda: text[at:],
                lambda: text[:at] + text[end:],
                lambda: text[:at] + chance.choice(CHARACTERS) + text[at:],
                lambda: text[:at] + chance.choice(CHARACTERS) + text[at + 1 :],
                lambda: text[:end] + text[at:end] + text[end:],
                lambda: text[:at] + chance.choice(self._words) + text[at:],
                lambda: text + text,
            ]
        )()

    def _text(self, data: bytes, chance: random.Random) -> bytes:
        for _ in range(chance.choice([1, 1, 2, 4, 8])):
            how = chance.randrange(10)
            at, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
            if how < 3 and self._changed is not None:
                data = self._changed(data, len(data) + 64)
            elif how == 3 and self._pool:
                other = chance.choice(self._pool)
                start = chance.randrange(len(other) + 1)
                data = data[:at] + other[start : start + chance.randrange(1, 200)] + data[end:]
            elif how == 4:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            elif how == 5:
                data = data[:end] + data[at:end] + data[end:]
            else:
                text = self._change_text(data.decode("utf-8", "surrogateescape"), chance)
                data = text.encode("utf-8", "surrogateescape")
        return data


def grown(data: bytes, count: int, seed: int) -> bytes:
    """The same lines with one thing as often as `count`: numbered or not, as the seed has it. Of text, a part of it."""
    chance = random.Random(seed)
    documents = values(data)
    found = [*places(documents)]
    if not found:
        return data + data[-chance.randrange(1, 40) :] * count
    if chance.random() < 0.5:
        where, name = documents, chance.randrange(len(documents))
    else:
        where, name = chance.choice(found)
    one, how = where[name], chance.randrange(4)
    if isinstance(where, list):
        where[name : name + 1] = [_numbered(one, how, number) for number in range(count)]
    else:
        where |= {f"{name}{number}": _numbered(one, how, number) for number in range(count)}
    return lines(documents)


def _numbered(value: Any, how: int, number: int) -> Any:
    """A copy in which the numbers (1), the texts (2) or the names of unknown fields (3) are others than in each other copy."""
    if isinstance(value, list):
        return [_numbered(one, how, number) for one in value]
    if isinstance(value, dict):
        own = {f"own{number}": number} if how == 3 else {}
        return {name: _numbered(one, how, number) for name, one in value.items()} | own
    if how == 1 and isinstance(value, int) and not isinstance(value, bool):
        return number
    if how == 2 and isinstance(value, str) and any(one.isdigit() for one in value):
        return f"{value}{number}"
    return value
