"""Sharing one source among many readers, early and late."""
