"""Resilience: streams that break, stall, or are stopped."""
