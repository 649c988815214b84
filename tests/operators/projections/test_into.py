"""JSON made into people's classes: attrs, dataclasses, Pydantic, TypedDicts, one within another."""

from __future__ import annotations

import abc
import dataclasses
import typing
from collections.abc import Mapping, Sequence  # the classes' annotations are read at run time
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NotRequired,
    Optional,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import attrs
import pytest
import typing_extensions
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, RootModel

import rxdelta as rd
from rxdelta.core import freeze
from rxdelta.operators.projections.partial import Into

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


class Named2(TypedDict, total=False):
    title: Required[str]
    note: str


class Route(Named2):
    spot: Spot
    legs: NotRequired[list[Named2]]
    stops: Annotated[NotRequired[dict[str, Step]], "on the way"]


class Newer(typing_extensions.TypedDict):  # the one that Pydantic wants before Python 3.12
    route: typing_extensions.ReadOnly[Route]
    sent: typing_extensions.NotRequired[typing_extensions.ReadOnly[int]]


ROUTE = {"title": "T", "spot": {"name": "sea"}}


def whole(cls: type[T], value: Any) -> T:
    return Into(cls).whole(freeze(value))


@pytest.mark.parametrize("cls", [Spot, Step, Slotted, Model, Spot2, Everything, Box, Route])
@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_what_is_no_object_is_no_instance(cls: type, value: Any) -> None:
    with pytest.raises(TypeError, match="not an object"):
        whole(cls, value)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (whole(Spot, {"name": "x"}), Spot("x")),
        (whole(Step, {"what": "x", "unknown": 1, "__class__": "int"}), Step("x")),
        (whole(Slotted, {"spots": []}), Slotted(spots=())),
        (whole(Model, {"title": "x"}), Model(title="x")),
        (whole(Box, {"item": 1}), Box(1)),
    ],
)
def test_a_field_that_has_not_come_has_its_default(made: Any, expected: Any) -> None:
    assert type(made) is type(expected)
    assert made == expected


def test_a_default_is_made_anew_for_each() -> None:
    assert whole(Step, {"what": "x"}).tags is not whole(Step, {"what": "x"}).tags


def test_it_is_made_all_the_way_in() -> None:
    made = whole(
        Everything,
        {
            "title": "T",
            "steps": [{"what": "look", "spot": {"name": "sea"}}, {"what": "g"}],
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
    assert made.steps == [Step("look", Spot("sea")), Step("g")]
    assert (made.maybe, made.or_text, made.or_many) == (Step("m"), Step("o"), [Step("n")])
    assert made.either == {"what": "e"}  # of two classes neither is ours to choose
    assert made.either_many == [{"what": "e"}]
    assert (made.by_name, made.noted) == ({"x": Spot("X")}, [Spot("N")])
    assert made.model == Spot2(spotName="P")
    assert made.box == Box(3, Box(4))
    assert made.anything == {"what": "a"}
    assert made._hidden == 9
    assert made.total == 2
    assert {type(one) for one in (made.either, made.steps, made.by_name)} == {dict, list}


def test_a_tuple_is_a_tuple_with_items_of_one_kind_or_of_several() -> None:
    made: Any = whole(Slotted, {"spots": [{"name": "a"}], "pair": [{"name": "b"}, 3, {"more": 4}]})
    assert made.spots == (Spot("a"),)
    assert made.pair == (Spot("b"), 3, {"more": 4})
    assert whole(Slotted, {"spots": [{"name": "a"}], "pair": [{"name": "b"}, 3]}) == Slotted(
        spots=(Spot("a"),), pair=(Spot("b"), 3)
    )


@pytest.mark.parametrize(
    ("cls", "value", "name"),
    [
        (Step, {"what": "x", "spot": "se"}, "spot"),
        (Step, {"what": "x", "spot": ["se"]}, "spot"),
        (Step, {"what": {"spot": {}}}, "what"),
        (Step, {"what": "x", "tags": {"a": 1}}, "tags"),
        (Slotted, {"spots": {"name": "x"}}, "spots"),
    ],
)
def test_what_does_not_fit_an_annotation_that_nobody_checks_stays_json(
    cls: type, value: Any, name: str
) -> None:
    assert getattr(whole(cls, value), name) == value[name]


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
    made = whole(Named, {"uno": 1, "due": 2, "trois": 3, "quattro": {"spotName": "P"}})
    assert (made.one, made.two, made.three, made.four) == (1, 2, 3, Spot2(spotName="P"))


def test_a_models_json_is_validated_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        pair: tuple[int, int]

    assert whole(Strict, {"pair": [1, 2]}).pair == (1, 2)
    with pytest.raises(ValueError, match="pair"):
        whole(Strict, {"pair": ["1", 2]})


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


def test_a_typed_dict_has_its_own_keys_and_classes_within() -> None:
    made = whole(
        Route,
        {
            **ROUTE,
            "legs": [{"title": "one", "x": 1}],
            "stops": {"a": {"what": "b"}},
            "unknown": [],
            "note": "n",
        },
    )
    assert made == {
        "title": "T",
        "note": "n",
        "spot": Spot("sea"),
        "legs": [{"title": "one"}],
        "stops": {"a": Step("b")},
    }
    assert type(made) is dict
    made["legs"].append({"title": "mine"})
    assert whole(Newer, {"route": ROUTE}) == {"route": {"title": "T", "spot": Spot("sea")}}

    @dataclasses.dataclass
    class Holder:
        newest: Newer | None

    assert whole(Holder, {"newest": {"route": ROUTE, "x": 1}}).newest == whole(Newer, {"route": ROUTE})


@pytest.mark.parametrize(
    ("cls", "value", "missing"),
    [
        (Route, {"title": "T"}, "spot"),
        (Route, {"spot": {"name": "sea"}}, "title"),
        (Route, {**ROUTE, "legs": [{}]}, "title"),
        (Newer, {}, "route"),
    ],
)
def test_a_typed_dict_without_a_required_key_is_refused(cls: type, value: Any, missing: str) -> None:
    with pytest.raises(TypeError, match=f"missing key '{missing}'"):
        whole(cls, value)


def test_a_typed_dict_whose_annotations_cannot_be_read_requires_nothing() -> None:
    class Hidden(TypedDict):
        here: NotRequired[int]

    class Outer(TypedDict):
        inner: Hidden
        also: int

    assert whole(Outer, {"inner": {"x": 1}, "more": 2}) == {"inner": {"x": 1}}


def test_a_dataclass_within_a_model_and_a_model_within_a_dataclass() -> None:
    model = whole(Model, {"title": "T", "steps": [{"to": "w"}], "by_name": {"a": {"name": "A"}}})
    assert (model.by_name, model.steps) == ({"a": Spot2(spotName="A")}, [Walk("w")])

    @dataclasses.dataclass
    class Holder:
        model: Spot2

    assert whole(Holder, {"model": {"name": "A"}}) == Holder(Spot2(spotName="A"))


def test_a_name_that_cannot_be_looked_up_says_nothing() -> None:
    @dataclasses.dataclass
    class Inner:
        text: str

    @dataclasses.dataclass
    class Outer:
        inner: Inner
        step: Step | None = None

    value = {"inner": {"text": "x"}, "step": {"what": "y"}}
    assert whole(Outer, value).inner == {"text": "x"}

    outer: Any = dataclasses.make_dataclass(
        "Outer", [("inner", Inner), ("step", Step), ("missing", "Nowhere", None)]
    )
    made: Any = whole(outer, value)
    assert (made.inner, made.step) == (Inner("x"), Step("y"))


class Abstract(abc.ABC, BaseModel):
    @abc.abstractmethod
    def run(self) -> None: ...


@pytest.mark.parametrize(
    "cls",
    [int, dict, "Spot", None, Spot("x"), list[Spot], RootModel[int], Abstract, Spot | Step, TypedDict, Any],
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


def test_classes_may_be_nested_as_deep_as_documents() -> None:
    value: Any = {}
    for _ in range(199):
        value = {"inner": value}
    assert isinstance(whole(Deep, value), Deep)


def test_pydantic_and_msgspec_are_not_imported_for_those_who_do_not_use_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys, dataclasses; sys.modules['pydantic'] = sys.modules['msgspec'] = None; import rxdelta as rd\n"
        "@dataclasses.dataclass\nclass A:\n    x: int\n"
        "rd.partial_json(A)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
