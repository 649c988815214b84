"""Where sentences end, in many scripts. `|` stands where a text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rxdelta.cutting import splitter_of


def sentences(*parts: str) -> list[str]:
    text = splitter_of("sentence")()
    found = [unit for part in parts for unit in text.feed(part)]
    return [*found, *text.close()]


EXAMPLES = {
    "English": "Hello there. |How are you? |I'm fine! |Wait... what? |Well... |Really?! |Yes…",
    "small letters go on": '"Really?" she asked. |It is 5 a.m. in Rome? yes.',
    "quotations": '"Yes." |‘No.’ |(See below.) |“Is it?” |He said "Go!" |Then he went.',
    "abbreviations": "Dr. Smith, Mrs. Jones et al. met at St. Mary vs. Prof. Li, e.g. Ann, i.e. Bob, Ph.D. Eve.",
    "in doubt it is one": "He lives in the U.S. The end. |Take plan B. Now.",
    "initials": "J. R. R. Tolkien and C. S. Lewis met. |So do I. |Yes.",
    "before numbers": "See No. 5, fig. 2 and p. 12 of vol. 3 on Sept. 11. |No. |That is all.",
    "numbers": "It costs 3.50 or 1.000.000,00. |In 1999. |Then v1.2.3 came. |Pi is 3.14159!",
    "degrees": "It has 21°C. |Or 70°F! |Now.",
    "names of hosts": "See www.example.com or a@b.co. |Use Node.js. |Now.",
    "Spanish": "¿Qué tal? |¡Muy bien! |El Sr. López vive en la pág. 3. |Adiós.",
    "French": "Il dit : « Oui. » |Puis il part. |Vraiment ? |Oui ! |M. Dupont et Mme. Curie, p. ex. Paris.",
    "German": "Er sagte: „Ja.“ |Dann z. B. Berlin, z.B. Bonn, d. h. Köln, vgl. Nr. 3. |»Nein.« |Gut. |»So«, sagte er.",
    "Russian": "Привет. |Как дела? |Это г. Москва, ул. Ленина. |А. С. Пушкин писал.",
    "Greek": "Πώς είσαι; |Καλά. |Εσύ\u037e |Κι εγώ· ευχαριστώ.",
    "no Greek question": "Do this; Then that; And more.",
    "Georgian": "გამარჯობა. |როგორ ხარ? |კარგად.",
    "Armenian": "Բարև։ |Ինչպես ես։",
    "Hebrew": "שלום. |מה שלומך? |טוב.",
    "Arabic": "مرحبا. |كيف حالك؟ |أنا بخير، شكرا.",
    "Urdu": "میں ٹھیک ہوں۔ |آپ کیسے ہیں؟ |اچھا۔",
    "Hindi": "नमस्ते। |आप कैसे हैं? |ठीक॥ |हाँ।",
    "Bengali": "আমি ভালো। |তুমি?",
    "Amharic": "ሰላም። |እንዴት ነህ፧ |ደህና።",
    "Burmese": "မင်္ဂလာပါ။ |နေကောင်းလား။",
    "Khmer": "សួស្តី។ |សុខសប្បាយទេ?",
    "Tibetan": "བཀྲ་ཤིས་བདེ་ལེགས། |ཁྱེད་རང་།",
    "Chinese": "我们走吧！|真的？！|是的，真的。|他说：“好。”|然后……走了。",
    "Japanese": "「こんにちは。」|元気ですか？|『はい！』|そうですね。\n|次。",
    "Korean": "안녕하세요. |어떻게 지내세요? |잘 지내요!",
    "Vietnamese": "Xin chào. |Bạn khỏe không? |Tôi khỏe.",
    "Turkish": "Merhaba. |İyi misin? |Iyiyim.",
    "a list": "Buy:\n|- apples\n|- pears\n\n|1. First of all. |Go.\n|2. Second\n  |a. Third\n|**3. Fourth**",
    "a heading": "# The title\n|of it\n\n|goes on. |## Next\n|Text.",
    "a table": "| a | b |\n^| - | - |\n^| 1 | 2 |",
    "wrapped": "This text was\nwrapped where it\nstood. |So was\nthis.\n|And this.",
    "a blank line": "no mark\n\n|small letter\n \n|more",
    "CR LF": "One\r\n|Two.\r\n\r\n|Three",
    "markdown": "**Bold.** |Next _it._ |`Code.` |![Image](a.png) of *Dr.* Who.",
    "sources": "It is so.[1] |And so.[2][^3] |See [4]. |Not.[a] here.",
    "code": "```python\n|x = f(a.b)\nprint(x)\n|```\n|Done.",
    "white space first": "\n\n  Hello. |You",
    "marks only": "... |! |?",
    "nothing": "",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_ends(name: str) -> None:
    cut = "^" if name == "a table" else "|"
    expected = [one for one in EXAMPLES[name].split(cut) if one]
    text = "".join(expected)
    assert sentences(text) == expected
    assert sentences(*text) == expected


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("ภาษาไทย สวัสดี " * 100, [600, 600, 300]),  # a script without marks: at a space
        ("yes, and " * 100, [599, 301]),  # at a comma, sooner than at a space
        ("我们，" * 300, [600, 300]),
        (f"{'word ' * 80}\nline {'word ' * 80}", [401, 405]),  # at a line, sooner than at a comma
        (f"a, {'x' * 1000}", [600, 403]),  # not in the first half
        (" " * 700, [600, 100]),
        ("Oh! " + "X" * 600 + "! No", [4, 600, 2, 2]),
    ],
)
def test_a_sentence_without_an_end_is_cut(text: str, lengths: list[int]) -> None:
    assert [len(one) for one in sentences(text)] == lengths
    assert sentences(*text) == sentences(text)


@given(
    st.lists(st.sampled_from([one.replace("|", "") for one in EXAMPLES.values()]), max_size=8),
    st.integers(1, 9),
)
def test_sentences_are_the_text_however_it_comes(texts: list[str], size: int) -> None:
    text = " ".join(texts)
    whole = sentences(text)
    assert "".join(whole) == text
    assert all(one.strip() for one in whole[:-1])
    assert max(map(len, whole), default=0) <= 600
    assert sentences(*(text[at : at + size] for at in range(0, len(text), size))) == whole


PAUSES = [", ", "; ", ": ", "\u060c ", "\u061b ", "\u104a", "\u1363", "\u3001", "\uff0c", "\uff1b"]


@pytest.mark.parametrize("mark", PAUSES)
def test_a_sentence_that_is_too_long_is_cut_behind_a_pause_of_its_script(mark: str) -> None:
    text = ("\u05d0" * 60 + " " + "\u05d0" * 60 + mark) * 20
    found = sentences(text)
    assert "".join(found) == text
    assert len(found) > 3
    assert all(unit.endswith(mark) for unit in found)
