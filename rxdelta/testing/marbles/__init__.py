"""Streams in one line of text, for tests in virtual time.

A line is read from left to right. Time is counted in frames of 0.1 s (`frame=`). An item takes one frame, brackets take one
frame with all that is in them, and blanks take none, so they can align lines::

    line      = { - | wait | item | brackets } [ end ]
    brackets  = "[" { wait | item } [ end ] "]"         at one time; a wait moves what is behind it
    -                                                   a frame in which nothing comes
    wait      = (2s) | (300ms)                          a time in which nothing comes, in whole microseconds
    end       = |                                       completes; a message that is open finishes before
              | /                                       completes as it is: a message that is open was cut off
              | #                                       breaks with error=, or with a ConnectionError
              | #Name | #Name("text")                   breaks with this exception

A line without an end never ends. The name of an error is that of a built-in exception or of one of `rd.errors`. Any other name
makes a `RuntimeError` whose class has the name. An error is drawn with its name and its text; its other attributes are left out.

Lines of events are the usual ones::

    Hello_world               a piece of text; _ is a blank; it ends at a blank, or at one of -|/#()[]<>"
    "a/b_c"                   a piece of any text, as JSON
    (think:Let me see)        a piece of reasoning
    (call:name{"a": 1})       a whole call; its id is call_ and the index of its block, or written name#id
    (call:name) (args:{"a":)  a call begins; a piece of its arguments
    (image:aGk=) (data:aGk=)  a whole PNG image in base64; a piece of a block's data
    (text) (think) (image)    a block begins
    (block:{...})             a block with this content begins; (block@2:{...}) has the index 2
    (fields:{...})            new fields of a block
    (end) (end:{...})         a block ends; with this content
    (start) (start:id,model)  the message begins
    (usage:3,5)               the tokens of the input and of the output
    (finish:stop,end_turn)    the message finishes; the reason, and the provider's word for it
    (error:text,type,code)    the provider's error event
    (tool:id,completed,"ok")  news of a call: its status, and its result as JSON or as a text
    (custom:name,{...})       the application's own event, with data as JSON or as a text
    (provider:house,ping,{})  an event of the provider, with its payload
    (stop:reason)             the message is interrupted
    (reset:1,error)           another attempt begins
    ({"event": ...})          any event in its wire form
    <'text'> <3>              a value that is no event, as a literal of Python
    (choice:1) (run:name)     what follows belongs to this choice or run, (run) to the run without a name; takes no time

The texts behind a comma may be left out. In parentheses a text ends at the next `)`, or at a comma if there may be
several texts. It may be JSON instead: `(think:"(hm)")`.

The start of the message and the starts and ends of its blocks are implied. A text continues with the block that was touched last,
if that is an open block of text, and otherwise begins one. A block that begins ends those that are open. After `+` it doesn't:
`(call:add)(+call:find)` has two open calls, and `@` says which one is meant: `(args@0:{"a":)`.

Lines of any values have `values=`: a mapping of marks to values, or a function such as `str`, which makes the value of a mark.
Each character is then the mark of one value, but for blanks and `-|#[]()<>`: `a-b[cd]|`. A value without a mark is written as a
literal.

The same records are always drawn as the same line, and `parse` reads the line back. So lines can be kept as snapshots.

Example:
    >>> import rxdelta as rd
    >>> from rxdelta.testing import marbles
    >>> line = '(think:Hm.) The _tide - (call:look{"at": "sea"}) |'
    >>> marbles.draw(marbles.parse(line))
    '(think:Hm.)The _tide-(call:look{"at": "sea"})|'
    >>> marbles.check(line, rd.compact_deltas(0.5), gives='(think:Hm.)(text)--[The_tide(call:look{"at": "sea"})]|')
    >>> pieces = {"T": "The", "t": " tide"}
    >>> marbles.check(marbles.parse(line), rd.text_deltas(), gives="-Tt--|", values=pieces)
"""

from rxdelta.testing.marbles.line import Record, draw, parse
from rxdelta.testing.marbles.running import Cold, check, cold, drawn, records
from rxdelta.testing.marbles.scanner import Values

__all__ = ["Cold", "Record", "Values", "check", "cold", "draw", "drawn", "parse", "records"]
