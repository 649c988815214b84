"""Events → what one panel shows: the text, a call's arguments, items of a list, blocks of markdown."""
