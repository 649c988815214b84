"""OpenAI Responses: commands and patches show as arguments while they stream."""

from __future__ import annotations

from support.openai_responses import (
    Chunk,
    added,
    completed,
    created,
    decode,
    event,
    only,
    reply,
    streamed,
)

from rxdelta.core import (
    thaw,
)
from rxdelta.core.events import (
    ProviderEvent,
)


def test_commands_of_a_shell_show_while_they_stream() -> None:
    def command(step: str, at: int, said: str) -> Chunk:
        chunk = event(f"shell_call_command.{step}", command_index=at)
        del chunk["item_id"]
        return {**chunk, "delta" if step == "delta" else "command": said}

    pieces = [
        command("added", 0, ""), command("delta", 0, 'echo "'), command("delta", 0, 'a"'), command("done", 0, 'echo "a"'),
        command("added", 1, ""), command("delta", 1, "ls"), command("done", 1, "ls"),
        command("added", 2, ""), command("done", 2, "pwd"),
    ]  # fmt: skip
    begin = {"type": "shell_call", "id": "sh", "call_id": "c1", "action": {"commands": []}}
    begun = only(reply(created(), added(begin), *pieces))
    assert thaw(begun.arguments_so_far) == {"action": {"commands": ['echo "a"', "ls", "pwd"]}}
    assert thaw(only(reply(created(), added(begin), *pieces, completed())).arguments) == thaw(
        begun.arguments_so_far
    )
    found = decode(created(), added(begin), command("delta", 4, "lost"))
    assert isinstance(found[-1], ProviderEvent)


def test_a_patch_shows_while_it_streams() -> None:
    operation = {"type": "update_file", "path": "a", "diff": ""}
    begin = {"type": "apply_patch_call", "id": "ap", "call_id": "c1", "operation": operation}
    pieces = [event("apply_patch_call_operation_diff.delta", delta=piece) for piece in ("@@\n", '-"a"\n')]
    begun = only(reply(created(), added(begin), *pieces))
    whole = {"operation": {**operation, "diff": '@@\n-"a"\n'}}
    assert thaw(begun.arguments_so_far) == whole
    finished = event("apply_patch_call_operation_diff.done", diff='@@\n-"a"\n')
    assert only(reply(created(), added(begin), *pieces, finished)) == begun
    assert thaw(only(reply(created(), added(begin), *pieces, completed())).arguments) == whole
    assert thaw(only(streamed({**begin, **whole}, *pieces, begin=begin)).arguments) == whole
