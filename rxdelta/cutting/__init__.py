"""Where text may be cut: graphemes, words, lines, sentences. Knows no events. Private to the package.

`cutter.py` has the rules and gives out one piece after the other, for an operator with a clock; `splitter.py` gives out
all that are certain at once, for a filter of text.
"""

from rxdelta.cutting.cutter import Chunking, Cutter, Rule, rule_of
from rxdelta.cutting.splitter import By, Splitter, splitter_of

__all__ = ["By", "Chunking", "Cutter", "Rule", "Splitter", "rule_of", "splitter_of"]
