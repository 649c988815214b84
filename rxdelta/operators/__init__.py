"""Observable → Observable: one operator a file, named after it."""

from rxdelta.operators._decode import decode
from rxdelta.operators._parse_ndjson import parse_ndjson
from rxdelta.operators._parse_sse import parse_sse
from rxdelta.operators._scan_deltas import scan_deltas
from rxdelta.operators._throttle_latest import throttle_latest
from rxdelta.operators._to_message import to_message
from rxdelta.operators._validate import validate

__all__ = ["decode", "parse_ndjson", "parse_sse", "scan_deltas", "throttle_latest", "to_message", "validate"]
