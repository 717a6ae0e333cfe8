"""Names and option strings to objects: `grada:alpha=0.3,keep=5` to `Grada(alpha=0.3, keep=5)`.

What ships with the project is listed here as text, so that listing it imports nothing. Third parties add theirs with
an entry point in the group `unpoison.defenses`, `unpoison.attacks`, `unpoison.encoders`,
`unpoison.generators`, `unpoison.nli` or `unpoison.cross_encoders`. A class that is no package's is named where it
stands: `my_module:MyDefense`, `my_module:MyDefense:option=value`.
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
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from unpoison.errors import OptionError, UnknownNameError, clip, nearest

__all__ = [
    "BUILT_IN",
    "Option",
    "create",
    "entry_point",
    "find",
    "format_spec",
    "names",
    "options",
    "own_code",
    "parameters",
    "parse",
    "read_options",
    "split_options",
    "split_specs",
]

BUILT_IN: dict[str, dict[str, str]] = {
    "defenses": {
        "guard": "unpoison.defenses.guard:Guard",
        "grada": "unpoison.defenses.grada:Grada",
        "ragdefender": "unpoison.defenses.ragdefender:RagDefender",
        "trustrag": "unpoison.defenses.trustrag:TrustRag",
        "radar": "unpoison.defenses.radar:Radar",
        "vote": "unpoison.defenses.vote:Vote",
        "vanilla": "unpoison.defenses.vanilla:Vanilla",
        "no-rag": "unpoison.defenses.vanilla:NoRag",
        "perplexity": "unpoison.defenses.perplexity:Perplexity",
        "robustrag": "unpoison.defenses.robustrag:RobustRag",
        "robustrag-decoding": "unpoison.defenses.robustrag_decoding:RobustRagDecoding",
        "reliabilityrag": "unpoison.defenses.reliabilityrag:ReliabilityRag",
        "reliabilityrag-sampled": "unpoison.defenses.reliabilityrag:SampledReliabilityRag",
        "ra-rag": "unpoison.defenses.ra_rag:RaRag",
        "astuterag": "unpoison.defenses.astuterag:AstuteRag",
        "instructrag": "unpoison.defenses.instructrag:InstructRag",
        "discern": "unpoison.defenses.discern:Discern",
        "madam": "unpoison.defenses.madam:Madam",
        "paraphrase": "unpoison.defenses.paraphrase:Paraphrasing",
        "rerank": "unpoison.defenses.rerank:Rerank",
        "hlatr": "unpoison.defenses.rerank:Hlatr",
    },
    "ablations": {
        "guard-ablation": "unpoison.bench.ablations:GuardAblation",
        "ragdefender-ablation": "unpoison.bench.ablations:RagDefenderAblation",
        "trustrag-ablation": "unpoison.bench.ablations:TrustRagAblation",
    },
    "attacks": {
        "published": "unpoison.bench.attacks.published:Published",
        "poisonedrag": "unpoison.bench.attacks.poisonedrag:PoisonedRag",
        "hotflip": "unpoison.bench.attacks.hotflip:HotFlip",
        "pia": "unpoison.bench.attacks.prompt_injection:Pia",
        "phantom": "unpoison.bench.attacks.phantom:Phantom",
        "garag": "unpoison.bench.attacks.garag:Garag",
        "tan": "unpoison.bench.attacks.tan:Tan",
        "adversarial-decoding": "unpoison.bench.attacks.adversarial_decoding:AdversarialDecoding",
        "jamming": "unpoison.bench.attacks.jamming:Jamming",
        "synonym": "unpoison.bench.attacks.paraphrase:Synonym",
        "paraphrase": "unpoison.bench.attacks.paraphrase:Paraphrase",
        "disperse": "unpoison.bench.attacks.disperse:Disperse",
        "mixed": "unpoison.bench.attacks.disperse:Mixed",
        "ambiguous": "unpoison.bench.attacks.prompt_injection:Ambiguous",
        "conditional": "unpoison.bench.attacks.prompt_injection:Conditional",
        "multi-cluster": "unpoison.bench.attacks.multi_cluster:MultiCluster",
        "diverse": "unpoison.bench.attacks.diverse:Diverse",
        "prompt-injection": "unpoison.bench.attacks.prompt_injection:PromptInjection",
        "copies": "unpoison.bench.attacks.published:Copies",
    },
}


BASES = {
    "defenses": "unpoison.defenses.base:Defense",
    "attacks": "unpoison.bench.attacks.base:Attack",
}
"""What a class that is named by its module must derive from."""


@dataclass(frozen=True, slots=True)
class Option:
    """One constructor argument that can be set from a string."""

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
def _third_party(kind: str) -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=f"unpoison.{kind}")}


def names(kind: str) -> list[str]:
    """Every known name of a kind ("defenses", "attacks", ...), sorted; nothing is imported."""
    return sorted({*BUILT_IN.get(kind, {}), *_third_party(kind)})


def find(kind: str, name: str) -> Any:
    """The class behind a name.

    Raises:
        UnknownNameError: No such name; the message suggests the nearest.
    """
    target = BUILT_IN.get(kind, {}).get(name)
    if target is None and kind == "defenses":
        target = BUILT_IN["ablations"].get(name)
    if target is not None:
        return _attribute(target)
    if ":" in name:
        return _own(kind, name)
    point = _third_party(kind).get(name)
    if point is None:
        raise UnknownNameError(kind.removesuffix("s"), name, names(kind))
    return point.load()


def entry_point(kind: str, name: str) -> Any:
    """What another package offers under this name ("encoders", "generators", "nli", ...), None where none does."""
    point = _third_party(kind).get(name)
    return None if point is None else point.load()


def _attribute(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def _own(kind: str, name: str) -> Any:
    """The class behind `my_module:MyDefense`; nothing else in a module can be named.

    Raises:
        OptionError: No such module or class, or one that cannot be used; the message says what is missing.
    """
    if kind not in BASES:
        raise OptionError(f"{clip(name)} names a class, which goes for {', '.join(BASES)} only")
    module, _, attribute = name.partition(":")
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
        offered = ", ".join(key for key in classes if getattr(home, key).__module__ == home.__name__) or "none"
        raise OptionError(f"{name} is no class derived from {base.__name__}; {module} has: {offered}")
    if not isinstance(getattr(named, "name", None), str):
        raise OptionError(f"{attribute} has no name; write name = 'mine' in the class, for tables and messages")
    if missing := sorted(getattr(named, "__abstractmethods__", ())):
        raise OptionError(f"{attribute} lacks the method {missing[0]}, which every {base.__name__} must have")
    return named


def own_code(spec: str) -> str:
    """A hash of the module behind `my_module:MyDefense`, "" for what has a name here: code that may change."""
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
    attribute = re.match(r"\s*([A-Za-z_][A-Za-z0-9_]{0,99})\s*(?:[:,]|\Z)", rest)
    if attribute and not _has_name_here(name) and all(part.isidentifier() for part in name.split(".")):
        name, rest = f"{name}:{attribute[1]}", rest[attribute.end() :]
    return name, split_options(rest, spec)


def _has_name_here(name: str) -> bool:
    return any(name in BUILT_IN[kind] or name in _third_party(kind) for kind in BUILT_IN)


def parameters(target: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a class or function by name, their annotations resolved.

    What a class takes as `**rest` it passes on to the class that it derives from: of that class's arguments those that
    `Unpack[TypedDict]` names, or else all.
    """
    hints = _hints(target.__init__ if isinstance(target, type) else target)  # type: ignore[misc]
    own: dict[str, inspect.Parameter] = {}
    passed_on: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(target).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD:
            own[name] = parameter.replace(annotation=hints.get(name, type(parameter.default)))
        elif isinstance(target, type):
            inherited, named = parameters(target.__mro__[1]), get_args(hints.get(name))
            passed_on = {key: inherited[key] for key in (named[0].__annotations__ if named else inherited)}
    return {**own, **{name: parameter for name, parameter in passed_on.items() if name not in own}}


class _Names(dict[str, Any]):
    """The names that annotations are made of; one that only type checkers import is an `object`, no simple type."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, object)


def _hints(target: Any) -> dict[str, Any]:
    """The annotations of a function or class, resolved."""
    target = inspect.unwrap(target)
    names = getattr(target, "__globals__", None) or vars(sys.modules[target.__module__])
    return get_type_hints(target, localns=_Names(names))


def options(target: Any) -> list[Option]:
    """The options of a class or function that a string can set: its arguments of simple types.

    Keys are left out: option strings end up in shell histories and manifests. They come from the environment.
    """
    return list(_options(target))


@cache
def _options(target: Any) -> tuple[Option, ...]:
    return tuple(
        Option(name, parameter.annotation, parameter.default)
        for name, parameter in parameters(target).items()
        if _simple(parameter.annotation) and not name.endswith("_key")
    )


def create(kind: str, spec: str, **given: Any) -> Any:
    """Make the object that an option string names; `given` adds objects that no string can say.

    A `given` value of None, or one that the class does not take, is left out.

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
        OptionError: An option that `target` does not have, or a value of the wrong type.
    """
    existing = {option.name: option for option in options(target)}
    for key in texts:
        if key not in existing:
            hint, known = nearest(key, existing), ", ".join(existing) or "none"
            raise OptionError(f"{owner} has no option {clip(key)}; {hint}it has: {known}")
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
            raise OptionError(f"{clip(part)} in {clip(owner)} is no option; write name:option=value,option=value")
        if option.strip() in chosen:
            raise OptionError(f"{option.strip()} is given twice in {clip(owner)}; give it once")
        chosen[option.strip()] = value.strip()
    return chosen


def split_specs(text: str, *, models: bool = False) -> list[str]:
    """Option strings with commas between them: `grada:alpha=0.3,keep=5,ragdefender` are two.

    A comma ends an option string unless `option=value` follows, without a colon before the equals sign. This is the
    one parser of such lists: on command lines, in YAML files and in Python.

    Args:
        text: Such as `openai:m,base_url=http://127.0.0.1:1/v1,reader`.
        models: Whether they name models, whose options all follow a comma: `reader,threshold=0.9`. Those of defenses
            and attacks follow a colon: `grada,alpha=0.3` becomes `grada:alpha=0.3`.

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
    """The option string of a name, which may have options already, and further options."""
    pairs = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()]
    return split_specs(",".join([name, *pairs]), models=models)[0]


_TEXTS = Sequence[str]
"""Several texts, with + between them: `guard:allow=faq-12+docs.example`."""

_WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none"}
"""What option strings may hold, in words."""


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _choices(hint: Any) -> tuple[Any, ...]:
    return tuple(choice for member in _members(hint) if get_origin(member) is Literal for choice in get_args(member))


def _simple(hint: Any) -> bool:
    return any(member in (int, float, bool, str, _TEXTS) or get_origin(member) is Literal for member in _members(hint))


def _value_of(text: str, hint: Any, owner: str) -> Any:
    """A value of the first member type that the text fits."""
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
