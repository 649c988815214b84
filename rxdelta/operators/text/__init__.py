"""Text on its way: what rewrites, checks, cuts or ends the text of a reply."""
