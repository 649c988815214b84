"""Projections: events → the content of one panel, such as text, a call's arguments, items of a list, markdown."""
