"""JSON built into people's classes: attrs, dataclasses, Pydantic, one within another, half there or whole."""

from __future__ import annotations

import abc
import dataclasses
import typing
from collections.abc import Mapping, Sequence  # the classes' annotations are read at run time
from typing import Annotated, Any, ClassVar, Generic, Literal, Optional, TypeVar, Union

import attrs
import pytest
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, PrivateAttr, RootModel

import rxdelta as rd
from rxdelta.core import FrozenDict, FrozenList, freeze
from rxdelta.operators._into import Into

T = TypeVar("T")


@attrs.frozen
class Spot:
    name: str
    depth: float = 1.5


@dataclasses.dataclass
class Step:
    what: str
    spot: Spot | None = None
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slotted:
    spots: tuple[Spot, ...]
    pair: tuple[Spot, int] | None = None
    number: int = 3


@dataclasses.dataclass
class Walk:
    to: str
    km: int = 1


class Model(BaseModel):
    title: str
    steps: list[Walk] = []
    spot: Spot2 | None = None
    by_name: dict[str, Annotated[Spot2, "noted"]] = Field(default_factory=dict)


class Spot2(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    name: str = Field(alias="spotName")
    depth: float = 1.5


Model.model_rebuild()


@attrs.define
class Everything:
    title: str
    steps: list[Step]
    maybe: Optional[Step]  # noqa: UP045
    either: Union[Step, Spot]  # noqa: UP007
    or_text: Step | str
    or_many: Step | list[Step]
    either_many: list[Step] | list[Spot]
    by_name: Mapping[str, Spot]
    noted: Annotated[Sequence[Annotated[Spot, "wet"]], "all"]
    model: Spot2
    box: Box[int]
    anything: Any
    kind: Literal["a", "b"] = "a"
    _hidden: int = attrs.field(default=4, alias="shown")
    total: int = attrs.field(init=False)
    level: ClassVar[int] = 3

    @total.default
    def _total(self) -> int:
        return len(self.steps)


@dataclasses.dataclass
class Box(Generic[T]):
    item: T
    inner: Box[T] | None = None


def partial(cls: type[T], value: Any) -> T:
    made, _ = Into(cls).partial(freeze(value), {})
    return made


def whole(cls: type[T], value: Any) -> T:
    return Into(cls).whole(freeze(value))


@pytest.mark.parametrize("cls", [Spot, Step, Slotted, Model, Spot2, Everything, Box])
@pytest.mark.parametrize(
    "value", [None, {}, [], "x", {"unknown": 1, "__class__": "int", "__dict__": {"a": 1}}]
)
def test_what_has_nothing_of_it_is_an_instance_with_defaults(cls: type, value: Any) -> None:
    made = partial(cls, value)
    assert type(made) is cls
    assert not hasattr(made, "unknown")


@pytest.mark.parametrize(
    ("cls", "missing", "defaults"),
    [
        (Spot, ["name"], {"depth": 1.5}),
        (Step, ["what"], {"spot": None, "tags": []}),
        (Slotted, ["spots"], {"pair": None, "number": 3}),
        (Model, ["title"], {"steps": [], "spot": None, "by_name": {}}),
        (Spot2, ["name"], {"depth": 1.5}),
        (Everything, ["title", "steps", "total"], {"kind": "a", "_hidden": 4}),
        (Box, ["item"], {"inner": None}),
    ],
)
def test_a_field_that_has_not_come_has_its_default_or_is_not_set(
    cls: type, missing: list[str], defaults: dict[str, Any]
) -> None:
    made = partial(cls, {})
    for name in missing:
        with pytest.raises(AttributeError):
            getattr(made, name)
    assert {name: getattr(made, name) for name in defaults} == defaults


def test_a_default_is_made_anew_for_each() -> None:
    one, other = partial(Step, {}), partial(Step, {})
    assert one.tags is not other.tags


def test_what_has_come_is_built_all_the_way_in() -> None:
    made = partial(
        Everything,
        {
            "title": "T",
            "steps": [{"what": "look", "spot": {"name": "sea"}}, {"what": "g"}, {}],
            "maybe": {"what": "m"},
            "either": {"what": "e"},
            "or_text": {"what": "o"},
            "or_many": [{"what": "n"}],
            "either_many": [{"what": "e"}],
            "by_name": {"x": {"name": "X"}},
            "noted": [{"name": "N"}],
            "model": {"spotName": "P"},
            "box": {"item": 3, "inner": {"item": 4}},
            "anything": {"what": "a"},
            "shown": 9,
        },
    )
    assert made.steps[:2] == [Step("look", Spot("sea")), Step("g")]
    assert isinstance(made.steps[2], Step)
    assert (made.maybe, made.or_text, made.or_many) == (Step("m"), Step("o"), [Step("n")])
    assert made.either == {"what": "e"}  # of two classes neither is ours to choose
    assert isinstance(made.either, FrozenDict)
    assert made.either_many == [{"what": "e"}]
    assert (made.by_name, made.noted) == ({"x": Spot("X")}, [Spot("N")])
    assert made.model == Spot2(spotName="P")
    assert made.box == Box(3, Box(4))
    assert made.anything == {"what": "a"}
    assert made._hidden == 9
    assert made.total == 3
    assert isinstance(made.steps, FrozenList)
    assert isinstance(made.by_name, FrozenDict)


def test_a_tuple_is_a_tuple_with_items_of_one_kind_or_of_several() -> None:
    made = partial(Slotted, {"spots": [{"name": "a"}], "pair": [{"name": "b"}, 3, {"more": 4}]})
    assert made.spots == (Spot("a"),)
    assert made.pair == (Spot("b"), 3, {"more": 4})
    assert whole(Slotted, {"spots": [{"name": "a"}], "pair": [{"name": "b"}, 3]}) == Slotted(
        spots=(Spot("a"),), pair=(Spot("b"), 3)
    )


@pytest.mark.parametrize(
    ("cls", "value", "name"),
    [
        (Step, {"spot": "se"}, "spot"),
        (Step, {"spot": ["se"]}, "spot"),
        (Step, {"what": {"spot": {}}}, "what"),
        (Step, {"tags": {"a": 1}}, "tags"),
        (Model, {"steps": {"what": "x"}}, "steps"),
        (Model, {"steps": ["x"]}, "steps"),
        (Model, {"by_name": [1]}, "by_name"),
        (Slotted, {"spots": {"name": "x"}}, "spots"),
    ],
)
def test_what_does_not_fit_stays_json(cls: type, value: Any, name: str) -> None:
    assert getattr(partial(cls, value), name) == value[name]
    assert type(getattr(partial(cls, value), name)) in (str, FrozenDict, FrozenList)


@attrs.frozen
class Bare:
    one: typing.List  # type: ignore[type-arg]  # noqa: UP006
    two: typing.Dict  # type: ignore[type-arg]  # noqa: UP006
    three: typing.Tuple  # type: ignore[type-arg]  # noqa: UP006
    four: list  # type: ignore[type-arg]
    five: Sequence  # type: ignore[type-arg]
    six: Mapping[str, int]
    seven: list[int] | dict[str, Spot]
    eight: dict[str, Spot] | None = None


def test_containers_that_say_nothing_of_what_they_hold_stay_json() -> None:
    value = {
        "one": [{}],
        "two": {"a": {}},
        "three": [1],
        "four": [{}],
        "five": [{}],
        "six": {"a": 1},
        "seven": [1],
        "eight": ["x"],
    }
    made = partial(Bare, value)
    assert {name: getattr(made, name) for name in value} == value
    assert all(isinstance(getattr(made, name), (FrozenList, FrozenDict)) for name in value)
    made = whole(Bare, value)
    assert {name: getattr(made, name) for name in value} == value
    assert {type(getattr(made, name)) for name in value} == {list, dict}


class Named(BaseModel):
    one: int = Field(alias="uno")
    two: int = Field(validation_alias="due")
    three: int = Field(validation_alias=AliasChoices("tre", "trois"))
    four: Spot2 | None = Field(default=None, alias="quattro")
    five: int | None = Field(default=None, validation_alias=AliasPath("numbers", 0))


def test_a_models_aliases_are_the_keys() -> None:
    value = {"uno": 1, "due": 2, "trois": 3, "quattro": {"spotName": "P"}}
    assert partial(Named, value) == whole(Named, value)
    assert partial(Named, value).model_fields_set == {"one", "two", "three", "four"}


def test_a_models_json_is_validated_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        pair: tuple[int, int]

    assert whole(Strict, {"pair": [1, 2]}).pair == (1, 2)
    with pytest.raises(ValueError, match="pair"):
        whole(Strict, {"pair": ["1", 2]})


class Careful(BaseModel):
    """Its hook relies on what may be missing."""

    name: str
    tags: list[str] = Field(default_factory=lambda: ["x"])
    late: str = Field(default_factory=lambda data: data["name"].upper())
    _length: int = PrivateAttr(0)

    def model_post_init(self, context: Any) -> None:
        self._length = len(self.name)


def test_a_model_whose_hook_fails_is_built_without_it() -> None:
    made = partial(Careful, {})
    assert made.tags == ["x"]
    assert made.model_fields_set == set()
    assert not hasattr(made, "late")
    assert repr(made)
    assert partial(Careful, {"name": "ab"})._length == 2
    assert partial(Careful, {"name": "ab"}).late == "AB"


def test_what_is_whole_is_made_by_its_own_constructor() -> None:
    made: list[Any] = []

    @dataclasses.dataclass
    class Counted:
        tags: list[str]
        sizes: dict[str, list[int]] = dataclasses.field(default_factory=dict)
        length: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            made.append(self)
            self.length = len(self.tags)

    half = partial(Counted, {"tags": ["a"], "length": 9})
    assert made == []
    assert half.length == 9
    full = whole(Counted, {"tags": ["a"], "sizes": {"b": [1]}, "length": 9, "more": 1})
    assert made == [full]
    assert full.length == 1
    full.tags.append("b")  # lists of one's own
    full.sizes["b"].append(2)


@pytest.mark.parametrize(
    ("cls", "value"),
    [(Spot, {}), (Step, {"spot": {}}), (Model, {"title": 3}), (Slotted, {}), (Named, {"uno": 1})],
)
def test_what_the_constructor_refuses_is_refused(cls: type, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        whole(cls, value)


def test_a_dataclass_within_a_model_and_a_model_within_a_dataclass() -> None:
    value = {"title": "T", "steps": [{"to": "w"}], "by_name": {"a": {"name": "A"}}}
    assert partial(Model, value) == whole(Model, value)
    assert isinstance(partial(Model, value).by_name["a"], Spot2)
    assert whole(Model, value).steps == [Walk("w")]

    @dataclasses.dataclass
    class Holder:
        model: Spot2

    assert partial(Holder, {"model": {"name": "A"}}) == whole(Holder, {"model": {"name": "A"}})


def test_a_name_that_cannot_be_looked_up_says_nothing() -> None:
    @dataclasses.dataclass
    class Inner:
        text: str

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        step: Step | None = None

    value = {"inner": {"text": "x"}, "step": {"what": "y"}}
    assert partial(Outer, value).inner == whole(Outer, value).inner == {"text": "x"}

    outer: Any = dataclasses.make_dataclass(
        "Outer", [("inner", Inner), ("missing", "Nowhere"), ("step", Step)]
    )
    made: Any = partial(outer, value)
    assert (made.inner, made.step) == (Inner("x"), Step("y"))


def test_what_is_closed_is_built_once() -> None:
    into = Into(Everything)
    reader = rd.PartialJson()
    memo: Any = {}
    seen: list[Any] = []
    for character in '{"steps": [{"what": "a"}, {"what": "b"}], "maybe": {"what": "m"}, "title": "x"}':
        reader.feed(character)
        made, memo = into.partial(reader.value, memo)
        if len(getattr(made, "steps", ())) == 2:
            seen.append(made)
    assert len({id(made.steps[0]) for made in seen}) == 1
    assert len({id(made) for made in seen}) > 10
    assert len({id(made.maybe) for made in seen if hasattr(made, "title")}) == 1
    assert len(memo) <= 8
    assert [step.what for step in seen[-1].steps] == ["a", "b"]


def test_an_item_is_built_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    built = 0

    class Counted:
        def __set_name__(self, owner: type, name: str) -> None: ...

        def __set__(self, instance: Any, value: Any) -> None:
            nonlocal built
            built += 1
            instance.__dict__["to"] = value

        def __get__(self, instance: Any, owner: type) -> Any:
            return instance.__dict__["to"]

    monkeypatch.setattr(Walk, "to", Counted(), raising=False)
    into, reader, memo = Into(Trip), rd.PartialJson(), {}
    for n in range(100):
        reader.feed(f'{"," if n else """{"walks": ["""}{{"to": "{n}')
        into_one, memo = into.partial(reader.value, memo)
        reader.feed('"}')
        into_other, memo = into.partial(reader.value, memo)
    assert [walk.to for walk in into_other.walks] == [str(n) for n in range(100)]
    assert into_one.walks[:98] == into_other.walks[:98]
    assert built <= 400


def test_another_list_at_the_same_depth_is_not_mistaken_for_more_of_one() -> None:
    into, memo = Into(Lists), {}
    first, memo = into.partial(freeze({"many": {"a": [{"to": "x"}, {"to": "y"}, {"to": "z"}]}}), memo)
    second, memo = into.partial(freeze({"many": {"b": [{"to": "v"}, {"to": "w"}, {"to": "u"}, {}]}}), memo)
    third, memo = into.partial(freeze({"many": {"b": [{"to": "t"}]}}), memo)
    assert [walk.to for walk in first.many["a"]] == ["x", "y", "z"]
    assert [walk.to for walk in second.many["b"][:3]] == ["v", "w", "u"]
    assert [walk.to for walk in third.many["b"]] == ["t"]


@dataclasses.dataclass
class Trip:
    walks: list[Walk]


@dataclasses.dataclass
class Lists:
    many: dict[str, list[Walk]]


class Abstract(abc.ABC, BaseModel):
    @abc.abstractmethod
    def run(self) -> None: ...


@pytest.mark.parametrize(
    "cls", [int, dict, "Spot", None, Spot("x"), list[Spot], RootModel[int], Abstract, Spot | Step, Any]
)
def test_what_cannot_be_built_is_refused_at_once(cls: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="into"):
        Into(cls)
    if cls is not None:
        with pytest.raises(rd.InvalidValueError, match="into"):
            rd.partial_json(cls)
        with pytest.raises(rd.InvalidValueError, match="into"):
            rd.partial_arguments(None, cls)


@attrs.frozen
class Deep:
    inner: Deep | None = None


def test_classes_nested_too_deep_are_no_exception() -> None:
    value: Any = {}
    for _ in range(199):
        value = {"inner": value}
    assert isinstance(partial(Deep, value), Deep)


class Broken:
    def __get__(self, *_: Any) -> Any:
        raise RuntimeError("broken")

    def __set__(self, *_: Any) -> None:
        raise RuntimeError("broken")


def test_a_class_that_cannot_be_filled_is_an_empty_instance() -> None:
    @attrs.define(slots=False)
    class Odd:
        name: str

    Odd.name = Broken()  # type: ignore[assignment]
    assert type(partial(Odd, {"name": "x"})) is Odd


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    import subprocess
    import sys

    code = (
        "import sys, dataclasses; sys.modules['pydantic'] = None; import rxdelta as rd\n"
        "@dataclasses.dataclass\nclass A:\n    x: int\n"
        "rd.partial_json(A)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
