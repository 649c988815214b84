import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime, marbles


async def answer(chunks) -> str:
    """The program under test: it gives up after thirty seconds of silence."""
    try:
        return (await rd.stream(chunks, timeout=30)).text
    except rd.errors.StallTimeoutError as error:
        return f"{error.snapshot.text} … (no answer)"


def test_a_stalled_reply_is_shown_as_far_as_it_came() -> None:
    stalled = FakeProvider(["Lisbon is", 3600.0, " dry."]).stream("openai-chat")
    time = VirtualTime()
    assert time.run(answer(stalled)) == "Lisbon is … (no answer)"
    print("waited", time.elapsed, "seconds in no time")


def test_deltas_are_joined_each_half_second() -> None:
    marbles.check("Lis bon --- is_dry |", rd.compact_deltas(0.5), gives="Lis----bonis_dry|")


test_a_stalled_reply_is_shown_as_far_as_it_came()  # pytest finds them by their names
test_deltas_are_joined_each_half_second()
