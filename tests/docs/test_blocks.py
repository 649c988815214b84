"""Each block of Python on a page and in the README runs alone, as a reader pastes it into a notebook or `python -m asyncio`."""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.pages import DOCS, Fenced, fenced, fenced_in, missing, pages

if TYPE_CHECKING:
    from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCKS = [
    pytest.param(block, id=block.place)
    for page in pages()
    for block in fenced(page)
    if block.language == "python"
]

WAYS = """
- ```py
  one
  ```

  ~~~python
  two
  ~~~

````{note}
```{code-block} python
three
```
````

```pycon
>>> four
```

```python title="five.py"
five
```

```text
six
```
"""


def test_python_is_known_however_it_is_fenced() -> None:
    python = [block for block in fenced_in(WAYS, "page") if block.language == "python"]
    assert [(block.text.strip(" >\n"), block.place) for block in python] == [
        ("one", "page:2"),
        ("two", "page:6"),
        ("three", "page:11"),
        ("four", "page:16"),
        ("five", "page:20"),
    ]


def test_no_python_is_where_it_is_not_run() -> None:
    """Pages of the reference show what docstrings have, which run elsewhere."""
    shown = [
        path.name for path in DOCS.rglob("*.rst") if re.search("code-block|>>>", path.read_text("utf-8"))
    ]
    assert shown == []


def test_a_package_that_nobody_declares_is_not_waited_for() -> None:
    assert missing("import rxdelt") is None
    assert missing("import asyncio\nfrom rxdelta import stream") is None


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_runs_as_pasted(
    block: Fenced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # some write a file
    if package := missing(block.text):
        pytest.skip(f"needs {package}")
    space: dict[str, Any] = {"__name__": "__main__"}
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, space, block.place, None, 0)
        assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0
        return
    code = compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:

        async def run() -> None:
            await eval(code, space)

        asyncio.run(run())
    else:
        exec(code, space)
    if block.printed is not None:
        printed = capsys.readouterr().out
        assert doctest.OutputChecker().check_output(block.printed, printed, FLAGS), printed
