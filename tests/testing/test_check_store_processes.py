"""Publishers in other processes that are killed, over a store in a file."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rxdelta.relay import Answer, LogKey, Page, Record
from rxdelta.testing import MemoryStore, StoreFault, check_store

HERE = "testing.test_check_store_processes"


class FileStore(MemoryStore):
    """What the check of processes needs of a store, with its place in a file that each call reads and writes."""

    @property
    def path(self) -> Path:
        return Path(os.environ["RXDELTA_TEST_FILE"])

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self.path.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.path.exists():
                self.place.logs, self.place.names = pickle.loads(self.path.read_bytes())
            yield
            new = self.path.with_suffix(".new")
            new.write_bytes(pickle.dumps((self.place.logs, self.place.names)))
            new.replace(self.path)  # a process that is killed leaves the old or the new one

    async def begin(self, key: LogKey) -> str | None:
        with self.locked():
            return await super().begin(key)

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        with self.locked():
            return await super().append(key, before, record)

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        with self.locked():
            return await super().bury(key, sign, record)

    async def read(self, *given: Any) -> Page | None:
        with self.locked():
            return await super().read(*given)


class WritesLater(FileStore):
    """Says that a record is written, and writes it behind the next three."""

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        held = self.__dict__.setdefault("held", [])
        held.append((key, before, record))
        if len(held) > 3:
            await super().append(*held.pop(0))
        return Answer("written")


class BeginsTwice(FileStore):
    async def begin(self, key: LogKey) -> str | None:
        await super().begin(key)
        return None


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "logs"
    monkeypatch.setenv("RXDELTA_TEST_FILE", str(path))
    return path


def test_processes_that_are_killed_lose_nothing(file: Path) -> None:
    report = check_store(f"{HERE}:FileStore", only=["processes"], runs=1)
    assert [result.left_out for result in report.results if result.part == "processes"] == [None]
    assert file.exists()


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("WritesLater", "records that a killed process had acknowledged"),
        ("BeginsTwice", "processes whose log has begun, by the answer: 2"),
    ],
)
def test_a_store_that_is_broken_between_processes_is_found(store: str, words: str, file: Path) -> None:
    with pytest.raises(StoreFault, match=words):
        check_store(f"{HERE}:{store}", only=["processes"], runs=1)
