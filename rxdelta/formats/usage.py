"""The usage of a reply: where each format's object has its counts, and which of them its totals don't include.

Anthropic and Bedrock count what a cache reads and writes beside the input, Gemini counts reasoning beside the output and
the results of its own tools beside the input. Vendors and gateways of one format differ: OpenAI's `completion_tokens`
includes reasoning, xAI's doesn't, and a count has several names. There the figures tell: a part stands beside its total
if it is larger, or if `total_tokens` has room for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    USAGE_DETAILS,
    FrozenDict,
    TokenUsage,
    check_members,
    freeze,
    is_list,
    is_mapping,
    make_usage,
    usage_from_wire,
)
from rxdelta.formats.decoding import Json

Counts: TypeAlias = dict[str, int]
"""Counts by their names in `TokenUsage.billed`."""
Steps: TypeAlias = list[list[str]]
"""The steps from a value to a count in it, each with the names for it."""
Bill: TypeAlias = Callable[[Json, Counts], Counts]
"""What is billed, of a provider's object and the counts that it has."""


class UsageForm:
    """The form of a provider's usage object.

    Args:
        places: Where each count is: the names on the way to it with dots between. In a list, a name chooses the entries
            that have it as a value (`A|B`: or this one), and their counts are summed. A count may have several places.
        bill: Makes the billed counts; without it, exactly these counts are billed.
        signs: Names of which each stands only in objects of this form.

    Attributes:
        places: By the name of a field, the counts that are in it, each with the steps to it.
        alone: The fields that are a count themselves, which has no other place.
        foreign: The fields in which objects of other forms have their totals.
    """

    def __init__(self, places: Mapping[str, str], bill: Bill | None = None, *, signs: str = "") -> None:
        self.bill = bill
        self.signs = frozenset(signs.split())
        own = {place.split(".")[0] for name in _TOTALS for place in places[name].split()}
        self.foreign = {*_TOTALS_OF_OTHERS, "tokens"} - own
        self.places: dict[str, list[tuple[str, Steps]]] = {}
        for name, found in places.items():
            for place in found.split():
                first, *rest = place.split(".")
                self.places.setdefault(first, []).append((name, [step.split("|") for step in rest]))
        self.alone = {place: name for name, place in places.items() if place.isidentifier()}

    def counts(self, raw: Json) -> Counts:
        """The counts that the object has. The largest of several places counts: gateways leave others at 0."""
        known: Counts = {}
        for first, places in self.places.items():
            if (found := raw.get(first)) is None:
                continue
            for name, rest in places:
                count = _at(found, rest)
                if count is not None:
                    known[name] = max(count, known.get(name, 0))
        return known


def usage_of(raw: Json, form: UsageForm) -> TokenUsage:
    """The usage that a provider's object tells. A count that it doesn't have is unknown, not 0."""
    known = freeze(raw, "usage", lenient=True)
    return _usage_of(known, form, form.counts(known))


class RunningUsage:
    """The usage of a message that the chunks of a stream tell piece by piece, or again and again.

    A null says nothing, and neither does a zero behind a figure: gateways close a stream with a usage of zeros. Else the last
    figure counts.

    Args:
        form: The form of the provider's objects.
        whole: Whether each object replaces the one before. Otherwise it has only what changed, object by object.

    Attributes:
        latest: The usage so far; `None` before the first figure.

    Example:
        >>> running = RunningUsage(CHAT, whole=True)
        >>> running.read({"prompt_tokens": 7, "completion_tokens": 2}).output_tokens
        2
        >>> running.read({"prompt_tokens": 0, "completion_tokens": 0}) is running.latest
        True
    """

    __slots__ = ("_counts", "_form", "_raw", "_whole", "latest")

    def __init__(self, form: UsageForm, *, whole: bool = False) -> None:
        self.latest: TokenUsage | None = None
        self._form = form
        self._whole = whole
        self._raw: dict[str, Any] = {}
        self._counts: Counts = {}

    def read(self, found: Json) -> TokenUsage | None:
        """The usage with what a chunk says; the same object if that is nothing new.

        Raises:
            LimitExceededError: It has more than `Limits.members` keys.
        """
        news = _news(self._raw, found, nested=not self._whole)
        gone = [name for name in self._raw if name not in found] if self._whole else ()
        if not (news or gone):
            return self.latest
        for name in gone:
            del self._raw[name]
        self._raw.update(news)
        if not self._reads_figures(news) or gone:
            self._counts = self._form.counts(self._raw)
        check_members(self._raw, DEFAULT_LIMITS, "the usage")
        self.latest = _usage_of(FrozenDict(self._raw), self._form, self._counts)
        return self.latest

    def _reads_figures(self, news: Json) -> bool:
        """Read what is no more than other figures of counts that only these fields tell; `False` if there is more."""
        counts, places, alone = self._counts, self._form.places, self._form.alone
        for name, figure in news.items():
            count = alone.get(name)
            if count in counts and type(figure) is int and 0 <= figure < _TOO_MANY:
                counts[count] = figure
            elif name in places:
                return False
        return True


def _news(known: Json, found: Json, *, nested: bool) -> Json:
    """What of an object is new beside what is known, frozen."""
    news: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    for name, value in found.items():
        if name not in known:
            changed[name] = value
        elif value is None or value == known[name]:
            continue
        elif type(value) is int and 0 < value < _TOO_MANY:
            news[name] = value
        elif not (_is_zero(value) and _figure(known[name])):
            changed[name] = value
    if not changed:
        return news
    changed = freeze(changed, "usage", lenient=True)
    news |= changed
    for name, value in changed.items():
        before = known.get(name)
        if name in known and value == before:
            del news[name]
        elif is_mapping(before) and is_mapping(value):
            inner = _news(before, value, nested=nested)
            left = before if nested else {key: one for key, one in before.items() if key in value}
            if inner or len(left) < len(before):
                news[name] = FrozenDict({**left, **inner})
                check_members(news[name], DEFAULT_LIMITS, "an object in the usage")
            else:
                del news[name]
        elif is_list(value):  # of which each change would read all
            check_members(value, DEFAULT_LIMITS, "a list in the usage")
    return news


def _is_zero(found: object) -> bool:
    return _figure(found) == 0


def _figure(found: Any) -> int | None:
    """A count, which some gateways send as text, and Cohere's SDK with a fraction of zero."""
    if isinstance(found, str) and found.isdecimal() and len(found) < _DIGITS:
        found = int(found)
    if type(found) is float and found.is_integer():
        found = int(found)
    return found if type(found) is int and 0 <= found < _TOO_MANY else None


def usage_of_langchain(found: Json) -> TokenUsage | None:
    """The usage of a LangChain message. Not all integrations keep its law that the totals include the details."""
    if is_mapping(found.get("raw")):  # written by us, with the bill
        return usage_from_wire(found)
    read = {name: found[name] for name in _OF_LANGCHAIN if name in found}
    usage = usage_from_wire(read)
    if usage is None:
        return None
    billed = _by_figures(read, dict(usage.billed))
    raw = found if isinstance(found, FrozenDict) else freeze(found, "usage", lenient=True)
    return _made({ours: getattr(usage, name) for name, ours in _NAMES.items()}, raw, billed)


def completed(usage: TokenUsage) -> TokenUsage:
    """The usage with the details that its `raw` has, for one that was made or stored without them."""
    raw, totals = usage.raw, {name: getattr(usage, name) for name in _TOTALS}
    known = {name: count for name, count in totals.items() if count is not None}
    if not raw or usage.billed != known:
        return usage
    form = next((form for form in _FORMS if not form.signs.isdisjoint(raw)), None)
    if form is None:
        found = usage_of_langchain(raw)
    else:
        details = {name: count for name, count in form.counts(raw).items() if name not in totals}
        found = _usage(raw, details | known, form)
    if found is None or any(getattr(found, name) != count for name, count in totals.items()):
        return usage
    return attrs.evolve(found, cumulative=usage.cumulative, _more=usage.more)


def _usage_of(raw: FrozenDict[Any], form: UsageForm, counts: Counts) -> TokenUsage:
    """The usage of a frozen object. A total that isn't there, or is 0, may be there by the name of another form."""
    if counts.get("input_tokens") and counts.get("output_tokens"):
        return _usage(raw, counts, form)
    names = raw.keys()
    if not names.isdisjoint(form.foreign) and not names.isdisjoint(_TOTALS_OF_OTHERS):
        missing = [name for name in _TOTALS if not counts.get(name)]
        others = sorted(_FORMS, key=lambda other: other.signs.isdisjoint(raw))
        for other in others if len(missing) == 2 else ():
            theirs = other.counts(raw)
            if other is not form and any(theirs.get(name) for name in _TOTALS):
                return _usage(
                    raw, {**counts, **{n: c for n, c in theirs.items() if c or n not in counts}}, other
                )
        for name in missing:
            count = max((other.counts(raw).get(name, 0) for other in others), default=0)
            counts = {**counts, name: count} if count else counts
    return _usage(raw, counts, form)


def _usage(raw: FrozenDict[Any], counts: Counts, form: UsageForm) -> TokenUsage:
    billed = counts if form.bill is None else form.bill(raw, counts)
    return _made(counts, raw, billed)


def _made(counts: Mapping[str, int | None], raw: FrozenDict[Any], billed: Counts) -> TokenUsage:
    given, generated, read, written, reasoning, heard, spoken = map(counts.get, _PLAIN)
    is_plain = _PLAIN_NAMES.issuperset(billed) and (
        billed is counts or billed == {name: counts[name] for name in _PLAIN if counts.get(name) is not None}
    )
    own = _NO_BILL if is_plain else FrozenDict(billed)
    return make_usage(given, generated, raw, read, written, reasoning, heard, spoken, own)


_TOTALS = ("input_tokens", "output_tokens")
_NAMES: Mapping[str, str] = {**{name: name for name in _TOTALS}, **USAGE_DETAILS}
"""The counts of a `TokenUsage`, with their names in what is billed."""
_PLAIN = tuple(_NAMES.values())
_PLAIN_NAMES = frozenset(_PLAIN)
_NO_BILL: FrozenDict[int] = FrozenDict()
_OF_LANGCHAIN = (*_TOTALS, "total_tokens", "totalTokens", "input_token_details", "output_token_details")


def _at(found: Any, steps: Steps) -> int | None:
    for depth, names in enumerate(steps):
        if is_mapping(found):
            found = found.get(names[0])
        elif is_list(found):
            total, rest = None, steps[depth + 1 :]
            for one in found:
                values: Any = one.values() if is_mapping(one) else ()
                for name in names:
                    if name in values:
                        count = _at(one, rest)
                        total = total if count is None else count + (total or 0)
                        break
            return total
        else:
            return None
    return _figure(found)


_DIGITS = 20
_TOO_MANY = 2**60
"""What nobody is billed for. The sum of some counts that are less can be stored."""


# Bills.


def _with(counts: Counts, total: str, *parts: str) -> Counts:
    """The counts, of which the total includes the parts too."""
    more = [counts[name] for name in parts if name in counts]
    return {**counts, total: counts.get(total, 0) + sum(more)} if more else counts


def _beside_caches(_: Json, counts: Counts) -> Counts:
    return _with(counts, "input_tokens", *_CACHES)


_CACHES = ("cache_read_tokens", "cache_write_tokens")


def _of_anthropic(raw: Json, counts: Counts) -> Counts:
    """Also what it took to compact the conversation, which no total includes.

    Other iterations are in the totals, or are another model's, which costs something else.
    """
    billed = _beside_caches(raw, counts)
    iterations: Any = raw.get("iterations")
    for one in iterations if is_list(iterations) else ():
        if is_mapping(one) and one.get("type") == "compaction":
            more = _beside_caches(one, ANTHROPIC.counts(one))
            billed = {name: billed.get(name, 0) + more.get(name, 0) for name in {**billed, **more}}
    return billed


def _of_google(_: Json, counts: Counts) -> Counts:
    billed = _with(counts, "output_tokens", _REASONING)
    if "input_tool_tokens" in counts:
        billed = _with(billed, "input_tokens", "input_tool_tokens")
        for kind in _MODALITIES:
            billed = _with(billed, f"input_{kind}_tokens", f"input_{kind}_tool_tokens")
    return billed


_REASONING = "output_reasoning_tokens"


def _of_cohere(raw: Json, counts: Counts) -> Counts:
    """Cohere says itself what it bills. That has nothing to do with its counts of tokens."""
    units = {name: _at(raw, [["billed_units"], [name]]) for name in _TOTALS}
    return {name: count for name, count in units.items() if count is not None} or counts


def _by_figures(raw: Json, counts: Counts) -> Counts:
    """As in OpenAI's API, unless the figures contradict it.

    Perplexity's counts of citations and of the reasoning beside them are always on top. A sum that has room for more
    than all counts includes reasoning that isn't reported, as with Gemini behind a gateway.
    """
    total = max(_figure(raw.get("total_tokens")) or 0, _figure(raw.get("totalTokens")) or 0)
    given, generated = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    room = total - given - generated if "input_tokens" in counts and "output_tokens" in counts else 0
    reasoning, caches = counts.get(_REASONING, 0), [counts.get(name, 0) for name in _CACHES]
    billed = counts
    if reasoning > generated or 0 < reasoning <= room or _CITED in counts:
        billed = _with(billed, "output_tokens", _REASONING, _CITED)
        room -= reasoning
    if max(caches) > given or 0 < sum(caches) == room:  # what is written may have been read as well
        billed = _with(billed, "input_tokens", *_CACHES)
    elif 0 < room == counts.get("input_audio_tokens"):  # Mistral's
        billed = _with(billed, "input_tokens", "input_audio_tokens")
    elif room > 0 and not reasoning:
        billed = {**billed, "output_tokens": billed["output_tokens"] + room}
    return billed


_CITED = "output_citation_tokens"


# The forms.

_TOTALS_OF_OTHERS = (
    "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "inputTokens", "outputTokens",
    "promptTokenCount", "candidatesTokenCount", "total_input_tokens", "total_output_tokens",
)  # fmt: skip
"""The names of totals, of which a gateway may use those of another vendor."""


def _by_modality(name: str, place: str, count: str) -> dict[str, str]:
    """The places of a count by modality, in a list of such counts."""
    return {name.format(kind): f"{place}.{words}.{count}" for kind, words in _MODALITIES.items()}


_MODALITIES = {
    "text": "TEXT|text",
    "audio": "AUDIO|audio",
    "image": "IMAGE|image|DOCUMENT|document",
    "video": "VIDEO|video",
}

CHAT = UsageForm(
    {
        "input_tokens": "prompt_tokens",
        "output_tokens": "completion_tokens",
        "cache_read_tokens": (
            "prompt_tokens_details.cached_tokens "
            "prompt_token_details.cached_tokens "  # Writer
            "prompt_cache_hit_tokens "  # DeepSeek
            "cached_tokens "  # Moonshot, Together
            "cache_read_input_tokens "  # LiteLLM, Databricks
            "cached_prompt_text_tokens "  # xAI, earlier
            "num_cached_tokens"  # Mistral, earlier
        ),
        "cache_write_tokens": (
            "prompt_tokens_details.cache_write_tokens "
            "prompt_tokens_details.cache_creation_tokens "  # LiteLLM
            "prompt_tokens_details.cache_creation_input_tokens "  # Alibaba
            "cache_creation_input_tokens"
        ),
        "cache_write_5m_tokens": (
            "prompt_tokens_details.cache_creation_token_details.ephemeral_5m_input_tokens "
            "prompt_tokens_details.cache_creation.ephemeral_5m_input_tokens"
        ),
        "cache_write_1h_tokens": (
            "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens "
            "prompt_tokens_details.cache_creation.ephemeral_1h_input_tokens"
        ),
        _REASONING: "completion_tokens_details.reasoning_tokens reasoning_tokens",
        "input_audio_tokens": "prompt_tokens_details.audio_tokens",
        "output_audio_tokens": "completion_tokens_details.audio_tokens",
        _CITED: "citation_tokens",  # Perplexity
        "web_searches": "num_search_queries",
    },
    _by_figures,
    signs="prompt_tokens completion_tokens prompt_tokens_details completion_tokens_details",
)
"""OpenAI's Chat Completions, and all that follow it."""

RESPONSES = UsageForm(
    {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "input_tokens_details.cached_tokens input_tokens_details.cache_read_input_tokens",
        "cache_write_tokens": (
            "input_tokens_details.cache_write_tokens input_tokens_details.cache_creation_input_tokens"
        ),
        _REASONING: "output_tokens_details.reasoning_tokens",
        "input_audio_tokens": "input_tokens_details.audio_tokens",
        "output_audio_tokens": "output_tokens_details.audio_tokens",
    },
    _by_figures,
    signs="input_tokens_details",
)

ANTHROPIC = UsageForm(
    {
        "input_tokens": "input_tokens",
        "output_tokens": "output_tokens",
        "cache_read_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
        "cache_write_5m_tokens": "cache_creation.ephemeral_5m_input_tokens",
        "cache_write_1h_tokens": "cache_creation.ephemeral_1h_input_tokens",
        _REASONING: "output_tokens_details.thinking_tokens",
        "web_searches": "server_tool_use.web_search_requests",
    },
    _of_anthropic,
    signs="cache_read_input_tokens cache_creation_input_tokens server_tool_use",
)

BEDROCK = UsageForm(
    {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_tokens": "cacheReadInputTokens cacheReadInputTokenCount",  # Nova's own has the second
        "cache_write_tokens": "cacheWriteInputTokens cacheWriteInputTokenCount",
        "cache_write_5m_tokens": "cacheDetails.5m.inputTokens",
        "cache_write_1h_tokens": "cacheDetails.1h.inputTokens",
    },
    _beside_caches,
    signs="cacheReadInputTokens cacheWriteInputTokens cacheReadInputTokenCount cacheWriteInputTokenCount",
)

GEMINI = UsageForm(
    {
        "input_tokens": "promptTokenCount",
        "output_tokens": "candidatesTokenCount",
        "cache_read_tokens": "cachedContentTokenCount",
        _REASONING: "thoughtsTokenCount",
        "input_tool_tokens": "toolUsePromptTokenCount",
        **_by_modality("input_{}_tokens", "promptTokensDetails", "tokenCount"),
        **_by_modality("output_{}_tokens", "candidatesTokensDetails", "tokenCount"),
        **_by_modality("cache_{}_read_tokens", "cacheTokensDetails", "tokenCount"),
        **_by_modality("input_{}_tool_tokens", "toolUsePromptTokensDetails", "tokenCount"),
    },
    _of_google,
    signs="promptTokenCount candidatesTokenCount thoughtsTokenCount",
)

INTERACTIONS = UsageForm(
    {
        "input_tokens": "total_input_tokens",
        "output_tokens": "total_output_tokens",
        "cache_read_tokens": "total_cached_tokens",
        _REASONING: "total_thought_tokens",
        "input_tool_tokens": "total_tool_use_tokens",
        **_by_modality("input_{}_tokens", "input_tokens_by_modality", "tokens"),
        **_by_modality("output_{}_tokens", "output_tokens_by_modality", "tokens"),
        **_by_modality("cache_{}_read_tokens", "cached_tokens_by_modality", "tokens"),
        **_by_modality("input_{}_tool_tokens", "tool_use_tokens_by_modality", "tokens"),
    },
    _of_google,
    signs="total_input_tokens total_output_tokens",
)

COHERE = UsageForm(
    {
        "input_tokens": "tokens.input_tokens",
        "output_tokens": "tokens.output_tokens",
        "cache_read_tokens": "cached_tokens",
        _REASONING: "tokens.reasoning_tokens",
    },
    _of_cohere,
    signs="tokens billed_units",
)

OLLAMA = UsageForm({"input_tokens": "prompt_eval_count", "output_tokens": "eval_count"})

AI_SDK = UsageForm(
    {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_tokens": "inputTokenDetails.cacheReadTokens cachedInputTokens",
        "cache_write_tokens": "inputTokenDetails.cacheWriteTokens",
        _REASONING: "outputTokenDetails.reasoningTokens reasoningTokens",
    },
    _by_figures,
    signs="inputTokenDetails outputTokenDetails",
)

AG_UI = UsageForm(
    {
        "input_tokens": "inputTokens input_tokens",
        "output_tokens": "outputTokens output_tokens",
        "cache_read_tokens": "cachedInputTokens cached_input_tokens",
        "cache_write_tokens": "cacheWriteInputTokens cache_write_input_tokens",
        _REASONING: "reasoningTokens reasoning_tokens",
    },
    _by_figures,
)

_FORMS = (CHAT, GEMINI, INTERACTIONS, COHERE, BEDROCK, RESPONSES, ANTHROPIC, AI_SDK)
"""Those that `completed` tells apart."""
