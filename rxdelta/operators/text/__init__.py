"""Text on its way: changed, checked, cut and ended, however the source tells it."""
