"""The HTTP status with which a provider answers when it fails before the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["status_of"]


def status_of(kind: str | None, code: str | None) -> int:
    """The status of an error: its code if that is one, else what its words say, else 500.

    Args:
        kind: The provider's type of the error.
        code: The provider's code.

    Example:
        >>> status_of("overloaded_error", None), status_of("invalid_request_error", "invalid_api_key"), status_of(None, "418")
        (529, 401, 418)
    """
    if code is not None and code.isdecimal() and len(code) == 3 and 400 <= int(code) <= 599:
        return int(code)
    words = (word.casefold() for word in (code, kind) if word)  # the code says more than the type
    return next((_STATUSES[word] for word in words if word in _STATUSES), 500)


def _by_word(words: Mapping[int, str]) -> Mapping[str, int]:
    return {word: status for status, some in words.items() for word in some.split()}


_STATUSES: Final = _by_word(
    {
        400: "invalid_request_error invalid_request bad_request context_length_exceeded invalid_argument failed_precondition "
        "out_of_range validationexception servicequotaexceededexception",
        401: "authentication_error unauthorized invalid_api_key unauthenticated unrecognizedclientexception",
        402: "billing_error payment_required",
        403: "permission_error permission_denied forbidden accessdeniedexception",
        404: "not_found_error not_found model_not_found resourcenotfoundexception",
        408: "modeltimeoutexception",
        409: "conflict conflict_error aborted already_exists conflictexception",
        413: "request_too_large",
        422: "unprocessable_entity unprocessable_entity_error",
        424: "modelerrorexception modelstreamerrorexception",
        429: "rate_limit_error rate_limit_exceeded rate_limited too_many_requests insufficient_quota resource_exhausted "
        "tokens requests throttlingexception modelnotreadyexception",
        499: "cancelled",
        501: "unimplemented",
        503: "service_unavailable service_unavailable_error unavailable serviceunavailableexception",
        504: "timeout timeout_error gateway_timeout deadline_exceeded",
        529: "overloaded_error overloaded",
    }
)
