"""Creates objects from names and option strings: `grada:alpha=0.3,keep=5` becomes `Grada(alpha=0.3, keep=5)`.

A subpackage registers its classes when it is imported (`register`). Other packages, such as the laboratory, do this
with an entry point in the group `unpoison.defenses`, `unpoison.attacks`, `unpoison.encoders`, `unpoison.generators`,
`unpoison.nli` or `unpoison.cross_encoders`. Any other class is named by its module: `my_module:MyDefense`,
`my_module:MyDefense:option=value`.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from unpoison.errors import OptionError, UnknownNameError, clip
from unpoison.utils.checks import refuse_unknown
from unpoison.utils.extras import wired

__all__ = [
    "BUILT_IN", "create", "entry_point", "entry_points_of", "find", "format_spec", "from_laboratory", "names",
    "options", "own_code", "parameters", "parse", "read_options", "register", "split_options", "split_specs",
]  # fmt: skip

BUILT_IN: dict[str, dict[str, str]] = {}
"""Kind -> name -> `module:Class`, as registered by subpackages."""

BASES: dict[str, str] = {}
"""The required base class of a class that is named by its module, by kind."""


def register(kind: str, base: str, classes: Mapping[str, str]) -> None:
    """Register the classes of a subpackage by their names.

    Args:
        kind: Such as "defenses".
        base: The class, as `module:Class`, that a class named by its module must be derived from.
        classes: Name -> `module:Class`, as strings, so that listing them imports nothing.
    """
    BASES[kind] = base
    BUILT_IN.setdefault(kind, {}).update(classes)


@dataclass(frozen=True, slots=True)
class Option:
    """A constructor argument that can be set from a string."""

    name: str
    type: Any
    default: Any

    @property
    def described(self) -> str:
        """Such as `alpha=0.4` or `start=uniform (uniform | query)`."""
        default = "" if self.default is inspect.Parameter.empty else f"={self.default}"
        choices = _choices(self.type)
        return f"{self.name}{default}" + (f" ({' | '.join(map(str, choices))})" if choices else "")


@cache
def entry_points_of(kind: str) -> Mapping[str, EntryPoint]:
    """What packages register in the group of a kind, by name."""
    return {point.name: point for point in entry_points(group=f"unpoison.{kind}")}


def _built_in(kind: str) -> Mapping[str, str]:
    wired(kind)  # the subpackage registers its classes when it is imported
    return BUILT_IN.get(kind, {})


def names(kind: str) -> list[str]:
    """Every known name of a kind ("defenses", "attacks", ...), sorted; nothing is imported."""
    return sorted({*_built_in(kind), *entry_points_of(kind)})


def find(kind: str, name: str) -> Any:
    """The class behind a name.

    Raises:
        UnknownNameError: No such name; the message suggests the nearest.
    """
    target = _built_in(kind).get(name)
    if target is not None:
        return _attribute(target)
    if ":" in name:
        return _own(kind, name)
    point = entry_points_of(kind).get(name)
    if point is None and kind == "defenses":
        point = entry_points_of("ablations").get(name)  # which no list shows
    if point is None:
        raise UnknownNameError(kind.removesuffix("s"), name, names(kind))
    return point.load()


def entry_point(kind: str, name: str) -> Any:
    """The object that another package registers under this name and kind ("encoders", "nli", ...), or None."""
    point = entry_points_of(kind).get(name)
    return None if point is None else point.load()


def from_laboratory(kind: str, name: str, purpose: str) -> Any:
    """The object that the laboratory registers.

    Raises:
        OptionError: It is not installed.
    """
    found = entry_point(kind, name)
    if found is None:
        raise OptionError(
            f"{purpose} needs the laboratory, the second package of this distribution, which is not installed; run: "
            "pip install --force-reinstall unpoison"
        )
    return found


def _attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _own(kind: str, name: str) -> Any:
    """The class behind `my_module:MyDefense`; only subclasses of the required base can be named.

    Raises:
        OptionError: No such module or class, or an unusable one; the message says what is missing.
    """
    if kind not in BASES:
        raise OptionError(f"{clip(name)} names a class, which is possible for {', '.join(BASES)} only")
    module, _, attribute = name.partition(":")
    module = module.removesuffix(".py")
    try:
        home = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise OptionError(
            f"there is no module {module} to take {attribute} from; run the command in the folder of {module}.py, or "
            f"install it. Known {kind} without a module: {', '.join(names(kind))}"
        ) from None
    except Exception as error:
        raise OptionError(f"{module} cannot be imported: {type(error).__name__}: {error}") from error
    named, base = getattr(home, attribute, None), _attribute(BASES[kind])
    if not isinstance(named, type) or not issubclass(named, base):
        classes = [key for key, value in vars(home).items() if isinstance(value, type) and issubclass(value, base)]
        offered = ", ".join(key for key in classes if getattr(home, key).__module__ == home.__name__)
        other = [one for one in BASES if isinstance(named, type) and issubclass(named, _attribute(BASES[one]))]
        instead = f"it belongs to the {other[0]}" if other else f"{module} has: {offered or 'none'}"
        problem = f"is not a subclass of {base.__name__}" if hasattr(home, attribute) else "does not exist"
        raise OptionError(f"{name} {problem}; {instead}; write MODULE:CLASS with your own {base.__name__}")
    if not isinstance(getattr(named, "name", None), str):
        raise OptionError(f"{attribute} has no name; write name = 'mine' in the class, for tables and messages")
    if missing := sorted(getattr(named, "__abstractmethods__", ())):
        raise OptionError(f"{attribute} lacks the method {missing[0]}, which every {base.__name__} must have")
    return named


def own_code(spec: str) -> str:
    """A hash of the module behind `my_module:MyDefense`, whose code may change; "" for registered names."""
    name, _ = parse(spec)
    return _code_of(name.partition(":")[0]) if ":" in name else ""


def _code_of(module: str) -> str:
    file = getattr(sys.modules.get(module) or import_module(module), "__file__", None)
    return blake2b(Path(file).read_bytes(), digest_size=8).hexdigest() if file and Path(file).is_file() else ""


def parse(spec: str) -> tuple[str, dict[str, str]]:
    """Split `name:option=value,option=value`, or `module:Class:option=value`, whose name is `module:Class`.

    Raises:
        OptionError: An option without a value, or given twice.
    """
    if not isinstance(spec, str):
        raise OptionError(f"a name with its options must be a string such as 'guard:damage=0.01', got {clip(spec)}")
    name, _, rest = spec.partition(":")
    name = name.strip()
    if slip := re.fullmatch(r"(\w[\w-]{0,99})[ ,]+(\w{1,99}=.{1,500})", spec.strip()):
        raise OptionError(f"{clip(spec)}: options follow a colon; write {slip[1]}:{slip[2]}")
    attribute = re.match(r"\s*([A-Za-z_][A-Za-z0-9_]{0,99})\s*(?:[:,]|\Z)", rest)
    if attribute and not _has_name_here(name) and all(part.isidentifier() for part in name.split(".")):
        name, rest = f"{name}:{attribute[1]}", rest[attribute.end() :]
    return name, split_options(rest, spec)


def _has_name_here(name: str) -> bool:
    return any(name in names(kind) for kind in ("defenses", "attacks", "ablations"))


def parameters(target: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a class or function by name, with resolved annotations.

    `**rest` has the arguments that `Unpack[TypedDict]` names, of which each has its default as an annotation, as in
    `Annotated[bool, True]`; else `**rest` of a class is assumed to be passed on to its base class.
    """
    hints = _hints(target.__init__ if isinstance(target, type) else target)  # type: ignore[misc]
    own: dict[str, inspect.Parameter] = {}
    passed_on: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            own[name] = parameter.replace(annotation=hints.get(name, type(parameter.default)))
        elif named := get_args(hints.get(name)):
            passed_on = {key: _keyword(key, hint) for key, hint in _hints(named[0], include_extras=True).items()}
        elif isinstance(target, type):
            passed_on = parameters(target.__mro__[1])
    return {**own, **{name: parameter for name, parameter in passed_on.items() if name not in own}}


def _keyword(name: str, hint: Any) -> inspect.Parameter:
    """An argument by its annotation in a `TypedDict`."""
    kind, default = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


class _Names(dict[str, Any]):
    """Names in annotations; a name that is imported for type checking only resolves to `object`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _hints(target: Any, *, include_extras: bool = False) -> dict[str, Any]:
    """The resolved annotations of a function or class."""
    target = inspect.unwrap(target)
    names = getattr(target, "__globals__", None) or vars(sys.modules[target.__module__])
    return get_type_hints(target, localns=_Names(names), include_extras=include_extras)


def options(target: Any) -> list[Option]:
    """The options of a class or function that a string can set: its arguments of simple types.

    API keys are excluded, because option strings appear in shell histories and manifests; use the environment.
    """
    return list(_options(target))


@cache
def _options(target: Any) -> tuple[Option, ...]:
    return tuple(
        Option(name, parameter.annotation, parameter.default)
        for name, parameter in parameters(target).items()
        if _simple(parameter.annotation) and not name.endswith("_key") and parameter.kind != parameter.POSITIONAL_ONLY
    )


def create(kind: str, spec: str, **given: Any) -> Any:
    """Create the object that an option string names; `given` adds arguments that a string cannot express.

    A `given` value of None, or one that the class does not accept, is ignored.

    Raises:
        UnknownNameError: No such name.
        OptionError: An unknown option, a missing one, or a value of the wrong type.
    """
    name, texts = parse(spec)
    target = find(kind, name)
    existing = {option.name: option for option in options(target)}
    accepted = parameters(target)
    arguments = {key: value for key, value in given.items() if value is not None and key in accepted}
    arguments |= read_options(target, texts, name)
    required = (key for key, option in existing.items() if option.default is inspect.Parameter.empty)
    missing = [key for key in required if key not in arguments]
    if missing:
        raise OptionError(f"{name} needs {missing[0]}; write {name}:{missing[0]}=VALUE")
    return target(**arguments)


def read_options(target: Any, texts: Mapping[str, str], owner: str) -> dict[str, Any]:
    """Constructor arguments of `target` from their texts.

    Raises:
        OptionError: An unknown option, or a value of the wrong type.
    """
    existing = {option.name: option for option in options(target)}
    for key in texts:
        if key.endswith("_key"):
            raise OptionError(f"{owner}: set the key in the environment, such as OPENAI_API_KEY, which no log keeps")
    refuse_unknown(owner, texts, existing)
    return {key: _value_of(text, existing[key].type, f"{owner}:{key}") for key, text in texts.items()}


def split_options(text: str, owner: str) -> dict[str, str]:
    """`option=value,option=value` as a mapping.

    Raises:
        OptionError: An option without a value, or given twice.
    """
    chosen: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise OptionError(f"{clip(part)} in {clip(owner)} is not an option; write name:option=value,option=value")
        if option.strip() in chosen:
            raise OptionError(f"{option.strip()} is given twice in {clip(owner)}; give it once")
        chosen[option.strip()] = value.strip()
    return chosen


def split_specs(text: str, *, models: bool = False) -> list[str]:
    """Split a list of option strings: `grada:alpha=0.3,keep=5,ragdefender` has two.

    A comma ends an option string unless `option=value` follows, without a colon before the equals sign. Command lines,
    YAML files and Python all use this parser.

    Args:
        text: Such as `openai:m,base_url=http://127.0.0.1:1/v1,reader`.
        models: Whether they name models, whose options follow a comma: `reader,threshold=0.9`. Options of defenses and
            attacks follow a colon: `grada,alpha=0.3` becomes `grada:alpha=0.3`.

    Raises:
        OptionError: It begins with an option.
    """
    option_strings: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, _ = part.partition("=")
        if not equals or ":" in name:
            option_strings.append(part)
        elif not option_strings:
            raise OptionError(f"{clip(text)} begins with an option; write name:option=value,option=value")
        else:
            option_strings[-1] += f"{',' if models or ':' in option_strings[-1] else ':'}{part}"
    return option_strings


def format_spec(name: str, options: Mapping[str, Any], *, models: bool = False) -> str:
    """The option string of a name, which may already have options, with further options."""
    pairs = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()]
    return split_specs(",".join([name, *pairs]), models=models)[0]


_TEXTS = Sequence[str]
"""Several texts, separated by +: `guard:allow=faq-12+docs.example`."""

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none"}
"""The types of option values, in words."""


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _choices(hint: Any) -> tuple[Any, ...]:
    return tuple(choice for member in _members(hint) if get_origin(member) is Literal for choice in get_args(member))


def _simple(hint: Any) -> bool:
    return any(member in (int, float, bool, str, _TEXTS) or get_origin(member) is Literal for member in _members(hint))


def _value_of(text: str, hint: Any, owner: str) -> Any:
    """Convert a text to the first matching member type."""
    members, choices = _members(hint), _choices(hint)
    if text.lower() == "none" and NoneType in members:
        return None
    for choice in choices:
        if text == str(choice):
            return choice
    if bool in members and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        if kind in members:
            try:
                return kind(text)
            except ValueError:
                continue
    if str in members:
        return text
    if _TEXTS in members:
        return tuple(filter(None, text.split("+")))
    wanted = [*map(str, choices), *(word for kind, word in _WORDS.items() if kind in members)]
    raise OptionError(f"{owner} must be {' or '.join(wanted)}, got {clip(text)}")
