"""Hard sentences: how many the docstrings and comments of each file of the package have, and each page.

A sentence of six words or more counts if at least two fifths of its words are pronouns and connectives: it is hard
to read, because it names few things. A sentence of any length counts if its subject is a clause ("Who joins late gets
…", "What is held comes first") or follows an "Of …", because a reader learns late what it speaks of. Headings and
questions don't count. `tests/sentences.json` holds how many each file may still have.

    python tests/support/sentences.py            compare with the baseline; exit code 1 if they differ
    python tests/support/sentences.py --list     the sentences themselves, worst first
    python tests/support/sentences.py --lower    write the baseline anew, unless its total would rise
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "tests" / "sentences.json"

SHORTEST = 6  # words
SHARE = 0.4
LEANING = (
    "what who whoever whose which that those it its one ones none some all any them they this "
    "is so as there where nobody nothing somebody other others"
)
LEANS = frozenset(LEANING.split())
WORD = re.compile(r"[A-Za-z']+")
END = re.compile(r"(?<=[.!?])\s+(?=\*{0,2}[A-Z`])|(?<=[.!?:]\*\*)\s+")
AUXILIARIES = (
    "is isn't are was wasn't were has hasn't have had can can't could may might must shall should will won't would "
    "does doesn't did didn't came comes"
)
BACKWARDS = re.compile(
    rf"[\W_]*(?:(?:Who|Whoever|What|Whatever)\s+(?:\w+s\b|(?:{'|'.join(AUXILIARIES.split())})(?![\w']))|Of\s)"
)
BREAK = re.compile(
    r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\n\s+\*{0,2}\w+:\s|\s\|\s"
)  # a paragraph, an item, an argument, a cell
STRING_OR_COMMENT = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''', re.DOTALL
)  # much quicker than `tokenize`
EXAMPLE = re.compile(r"^\s*Example:|^\s*>>>", re.MULTILINE)


FENCE = re.compile(r"^ *(`{3,})(?!\{(?:glossary|note|tip|warning)\}).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
LABEL = re.compile(r"^#.*$|^\(.+\)=$", re.MULTILINE)


class Sentence(NamedTuple):
    line: int
    text: str
    share: float


def sentences(source: str) -> list[Sentence]:
    """The sentences of a file's docstrings and comments that count."""
    found: list[Sentence] = []
    for line, text in (*_docstrings(source), *_comments(source)):
        for sentence in END.split(" ".join(text.split())):
            words = WORD.findall(sentence)
            share = sum(word.lower() in LEANS for word in words) / max(len(words), 1)
            if len(words) >= SHORTEST and share >= SHARE:
                found.append(Sentence(line, sentence, share))
        found += _backwards(line, text, found)
    return found


def page_sentences(text: str) -> list[Sentence]:
    """The sentences of a page that begin with a clause, outside of its code and headings."""
    found: list[Sentence] = []
    for pattern in (FENCE, LABEL):
        text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    end = 0
    for paragraph in re.split(r"(\n(?: *\n)+)", text):
        line = text.count("\n", 0, end) + 1
        end += len(paragraph)
        found += _backwards(line, paragraph, [])
    return found


def _backwards(line: int, text: str, counted: Sequence[Sentence]) -> Iterator[Sentence]:
    """The sentences that begin with a clause and aren't counted yet."""
    known = {sentence.text for sentence in counted if sentence.line == line}
    for piece in BREAK.split(f"\n{text}"):
        for sentence in END.split(" ".join(piece.split())):
            if BACKWARDS.match(sentence) and not sentence.rstrip("*").endswith("?") and sentence not in known:
                yield Sentence(line, sentence, 0.0)


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Each docstring up to its example, with the line of what it documents."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), EXAMPLE.split(text)[0]


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Each comment with its line. Comments that are lines of their own, one below the other, are one text."""
    line, texts = 0, list[str]()
    for number, row in enumerate(STRING_OR_COMMENT.sub(_without_string, source).splitlines(), 1):
        code, mark, text = row.partition("#")
        alone = mark and not code.strip()
        if texts and not alone:
            yield line, " ".join(texts)
            texts = []
        if alone:
            line = line if texts else number
            texts.append(text.lstrip("# "))
        elif mark:
            yield number, text.lstrip("# ")
    if texts:
        yield line, " ".join(texts)


def _without_string(found: re.Match[str]) -> str:
    """A comment as it is, a string as the empty lines that it covers."""
    text = found[0]
    return text if text[0] == "#" else "\n" * text.count("\n")


def files() -> dict[str, list[Sentence]]:
    """The sentences that count, of each file of the package and each page that has any."""
    found = {
        path.relative_to(ROOT).as_posix(): sentences(path.read_text("utf-8"))
        for path in sorted((ROOT / "rxdelta").rglob("*.py"))
    }
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]):
        found[path.relative_to(ROOT).as_posix()] = page_sentences(path.read_text("utf-8"))
    return {name: counted for name, counted in found.items() if counted}


def differences(now: Mapping[str, int], baseline: Mapping[str, int]) -> list[str]:
    """Each file whose count isn't that of the baseline, with what to do about it."""
    cures = {True: "rewrite the new ones (--list shows them)", False: "--lower writes the lower count down"}
    return [
        f"{name}: {now.get(name, 0)} hard sentences, {baseline.get(name, 0)} in the baseline: {cures[above]}"
        for name in sorted({*now, *baseline})
        if (above := now.get(name, 0) > baseline.get(name, 0))
        or name not in now
        or now[name] < baseline[name]
    ]


def lowered(now: Mapping[str, int], baseline: Mapping[str, int]) -> dict[str, int]:
    """The baseline for the files as they are. Counts may move from file to file, as files do.

    Raises:
        ValueError: There are more hard sentences than the baseline allows in all.
    """
    if sum(now.values()) > sum(baseline.values()):
        raise ValueError(
            f"{sum(now.values())} hard sentences, {sum(baseline.values())} in the baseline: it is only lowered"
        )
    return dict(sorted(now.items()))


def main(arguments: list[str]) -> int:
    found = files()
    now = {name: len(counted) for name, counted in found.items()}
    baseline: dict[str, int] = json.loads(BASELINE.read_text("utf-8"))
    match arguments:
        case []:
            different = differences(now, baseline)
            print(*different or [f"{sum(now.values())} hard sentences, as in the baseline"], sep="\n")
            return 1 if different else 0
        case ["--list"]:
            worst = sorted((-one.share, name, one) for name, counted in found.items() for one in counted)
            kinds = ((f"{-share:.0%}" if share else "begins", name, one) for share, name, one in worst)
            print(*(f"{kind} {name}:{one.line}  {one.text}" for kind, name, one in kinds), sep="\n")
            return 0
        case ["--lower"]:
            try:
                new = lowered(now, baseline)
            except ValueError as error:
                print(error)
                return 1
            BASELINE.write_text(json.dumps(new, indent=2) + "\n", "utf-8")
            print(f"{sum(baseline.values())} → {sum(new.values())} hard sentences")
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
