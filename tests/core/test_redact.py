"""What is taken for a secret, what isn't, and that looking costs no more than the text is long."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, strategies as st

from rxdelta.core import quote, redact

CANARY = "canary"

SECRETS = [
    "token=canary",
    "?page=1&access_token=canary&x=2",
    '{"token": "canary"}',
    "{'api_key': 'canary canary', 'x': 1}",
    r"{\"client_secret\": \"canary\"}",
    r"{\"client_secret\": \"it's-canary\"}",
    '{"password": "ca\\"canary"}',
    '{"headers": {"X-API-Key": ["canary"]}}',
    '{\n  "secret":\n    "canary"\n}',
    "OPENAI_API_KEY=canary",
    "accessKey: 'canary'",
    "AccountName=x;AccountKey=canary==;EndpointSuffix=y",
    "aws_secret_access_key = wJalrcanary/bPx",
    "X-Amz-Signature=canary",
    "Authorization: Bearer canary.canary",
    "authorization: Basic canary==",
    '"Authorization": "Bearer canary"',
    "with Bearer canary",
    "Set-Cookie: a=canary; b=canary; Path=/",
    "postgres://admin:canary@db.internal/prod",
    "https://canary@example.com",
    "https://user:pass@canary@example.com",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/canary",
    "the_service_behind_the_gateway_api_key=canary",
    "the_service_behind_the_gateway_access_token: canary",
    "sk-canary123456",
    "sk-ant-api03-canary-1",
    "sk_live_canary",
    "ghp_canary12345",
    "xoxb-canary-1",
    "AIzaSyA-canary-123",
    "eyJhbGciOiJIUzI1NiJ9.canary.canary",
    "-----BEGIN RSA PRIVATE KEY-----\ncanary\ncanary\n-----END RSA PRIVATE KEY-----",
    '{"private_key": "-----BEGIN PRIVATE KEY-----\\ncanary"}',
    "0123456789canary0123456789abcdef0123",
    "d2hhdCBpcyBpbiBpdD8gY2FuYXJ5canary1==",
]

HARMLESS = [
    "",
    "Hello, world",
    "<html><body>502 Bad Gateway</body></html>",
    "upstream connect error or disconnect/reset before headers",
    '{"prompt_tokens": 100, "max_tokens": 5, "total_tokens": "seven"}',
    '{"keys": [1, 2], "monkey": "banana"}',
    "KeyError: 'index'",
    "the model anthropic/claude-3-5-sonnet-20241022 was not found",
    "call_abcdefghijklmnop123456",
    "550e8400-e29b-41d4-a716-446655440000",
    "https://example.com/a/path?page=2",
    "me@example.com",
    "a" * 300,
    "1" * 300,
    "-" * 300,
    "ask-for-something-else",
]


@pytest.mark.parametrize("text", SECRETS)
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    for said in (text, repr(text), json.dumps({"error": text}), f"before {text} behind"):
        assert CANARY not in redact(said)
        assert "[redacted]" in redact(said)
        assert redact(redact(said)) == redact(said)
    assert redact(f"before {text}").startswith("before ")


@pytest.mark.parametrize("text", HARMLESS)
def test_all_else_stays(text: str) -> None:
    assert redact(text) == text


def test_a_key_of_aws_and_a_hash_are_secrets_without_a_name() -> None:
    assert redact("AKIAIOSFODNN7EXAMPLE!") == "[redacted]!"
    assert redact("see 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b here") == "see [redacted] here"


@pytest.mark.parametrize("at", range(150, 420, 5))
def test_a_secret_that_the_quote_cuts_in_two_leaves_no_beginning(at: int) -> None:
    """Wherever it stands, and whatever was taken out before it."""
    for before in ("y ", "token=abc "):
        found = quote((before * at)[:at] + " sk-canary" + "1a" * 200 + " behind" * 100)
        assert "sk-" not in found
        assert len(found) <= 200


HOSTILE = [
    "a", "key", 'token="', "://", "-----BEGIN", "-----BEGIN PRIVATE KEY-----", "a1", "eyJ", "eyJaaaaaa.", "sk-", " ", "token ",
    '"', "bearer ", "token: ", 'key="', "b" * 31 + " ", "\\", "token\\", "cookie:", "key=[", "token=\\\"",
    "x@",
]  # fmt: skip


@pytest.mark.timeout(20)  # it takes a tenth of a second
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    "head",
    [
        "",
        *(
            pytest.param(head, marks=pytest.mark.slow)
            for head in ("token", 'key="', "://", "-----BEGIN PRIVATE KEY-----")
        ),
    ],
)
def test_no_text_makes_the_search_go_back_and_forth(piece: str, head: str) -> None:
    """Long texts: what grows with the square of the length would take much longer than the limit."""
    redact(head + piece * (200_000 // len(piece)))


@given(
    st.lists(
        st.sampled_from([*SECRETS, *HARMLESS, '"', "'", "\\", "=", ":", " ", "\n", "[redacted]"]) | st.text()
    )
)
@example(["postgres://admin:canary@db.internal/prod", "1" * 300, "@"])
def test_any_text_can_be_looked_at_twice(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once
    assert len(quote("".join(pieces))) <= 200
