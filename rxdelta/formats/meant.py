"""Which formats are meant by the name of a provider, of a model or of a front end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rxdelta.core import alternatives, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["meant_formats"]

_OPENAI = ("openai-chat", "openai-responses")
_CHAT = ("openai-chat",)
_BY_WORD = {
    **dict.fromkeys(("claude", "anthropic"), ("anthropic-messages",)),
    **dict.fromkeys(("openai", "gpt", "chatgpt", "azure", "o1", "o3", "o4", "codex"), _OPENAI),
    **dict.fromkeys(("google", "genai", "vertex", "aistudio", "gemini"), ("gemini",)),
    **dict.fromkeys(("bedrock", "aws", "amazon", "converse", "nova"), ("bedrock-converse",)),
    **dict.fromkeys(("cohere", "command"), ("cohere",)),
    **dict.fromkeys(("mistral", "mixtral", "codestral", "magistral"), ("mistral",)),
    **dict.fromkeys(("ollama", "llama"), ("ollama",)),
    **dict.fromkeys(
        (
            *(
                "openrouter",
                "groq",
                "together",
                "fireworks",
                "deepseek",
                "xai",
                "grok",
                "perplexity",
                "cerebras",
            ),
            *("litellm", "vllm", "sglang", "lmstudio", "qwen", "kimi", "moonshot", "huggingface", "nvidia"),
        ),
        _CHAT,
    ),
    **dict.fromkeys(("vercel", "usechat"), ("ai-sdk",)),
    **dict.fromkeys(("copilotkit", "agui"), ("ag-ui",)),
    **dict.fromkeys(("langgraph", "langsmith"), ("langchain",)),
}
"""The formats that providers and models speak, by the words that their names begin with."""


def meant_formats(given: str, known: Iterable[str]) -> str:
    """Advise on a name that no format has: the formats that are likely meant, then all.

    Example:
        >>> meant_formats("claude-opus", ["anthropic-messages", "gemini"])
        "did you mean 'anthropic-messages'? There are anthropic-messages, gemini"
        >>> meant_formats("qqq", ["gemini"])
        'there are gemini'
    """
    names = sorted(known)
    if not did_you_mean(given, names):
        words = re.findall(r"[a-z]+\d?", given[:100].lower())
        found = {
            name
            for word in words
            for key, formats in _BY_WORD.items()
            if word.startswith(key)
            for name in formats
            if name in names
        }
        if found:
            meant = " or ".join(map(repr, sorted(found)))
            return f"did you mean {meant}? There are {', '.join(names)}"
    return alternatives(given, names)
