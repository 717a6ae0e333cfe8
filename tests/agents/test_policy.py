"""Policies of tools: what holds for a tool that is named, for one that is not, and whose word its result is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unpoison.agents.policy import (
    LOCK_VERSION,
    MAX_TOOLS,
    LockFile,
    ToolPolicy,
    ToolSettings,
    identity_of,
    look_of,
    tool_hash,
)
from unpoison.errors import InputError, OptionError, UnknownNameError
from unpoison.sources.trust import trust

SOURCES = {"trusted": ["handbook.example"], "blocked": ["evil.example"]}


def test_a_tool_that_is_not_named_has_the_settings_of_the_star_and_a_named_one_completes_them() -> None:
    policy = ToolPolicy({"*": {"action": "flag", "threshold": 0.3}, "fetch": {"action": "block"}})
    assert policy.settings("other") == ToolSettings("flag", 0.3)
    assert policy.settings("fetch") == ToolSettings("block", 0.3)
    assert ToolPolicy().settings("other") == ToolSettings()
    own = ToolSettings("keep")
    assert ToolPolicy({"*": {"action": "flag", "threshold": 0.3}, "fetch": own}).settings("fetch") == own


def test_a_policy_is_read_from_none_a_mapping_and_itself() -> None:
    policy = ToolPolicy.of({"fetch": {"action": "keep"}})
    assert ToolPolicy.of(policy) is policy
    assert policy.settings("fetch").action == "keep"
    assert ToolPolicy.of(None).settings("fetch") == ToolSettings()


@pytest.mark.parametrize(
    ("tools", "error", "says"),
    [
        ({"fetch": {"acton": "block"}}, UnknownNameError, "setting of tools.fetch.*action"),
        ({"fetch": {"action": "drop"}}, OptionError, "tools.fetch: action"),
        ({"fetch": {"threshold": 1.5}}, OptionError, "tools.fetch: threshold"),
        ({"fetch": {"level": "friend"}}, OptionError, "tools.fetch: level"),
        ({"fetch": {"source": 7}}, OptionError, "source must be an address or a name, got 7"),
        ({"fetch": {"allow": "one"}}, OptionError, "allow must be a list of texts"),
        ({"fetch": {"arguments": ["to", ""]}}, OptionError, "arguments must be a list of texts"),
        ({"fetch": "block"}, OptionError, "tools.fetch must be keys with values, got 'block'"),
        (["fetch"], OptionError, "settings by the name of a tool"),
        ({str(n): {} for n in range(MAX_TOOLS + 1)}, OptionError, "settings by the name of a tool"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(tools: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ToolPolicy(tools)


def test_lists_of_settings_are_copied() -> None:
    given = ["to"]
    settings = ToolSettings(arguments=given, allow=given)
    given.append("path")
    assert (settings.arguments, settings.allow) == (("to",), ("to",))
    assert ToolSettings().arguments is None


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        (None, {"url": "a.example"}, None),
        ("{url}", {"url": "https://a.example/x"}, "https://a.example/x"),
        ("{url}", {}, None),
        ("{url}", {"url": 7}, None),
        ("{host}/{page}", {"host": "a.example", "page": "{host}"}, "a.example/{host}"),
        ("files", {}, "files"),
    ],
)
def test_a_source_may_name_arguments_of_the_call(source: str | None, arguments: Any, expected: str | None) -> None:
    assert ToolSettings(source=source).source_of(arguments) == expected


def test_a_policy_of_sources_is_above_the_level_of_a_tool_where_it_names_the_source() -> None:
    policy = ToolPolicy({"fetch": {"source": "{url}", "level": "open"}}, SOURCES)
    page, new = "https://handbook.example/a", "https://new.example/a"
    assert policy.standing("fetch", {"url": page}) == (page, "trusted", trust("trusted"))
    assert policy.standing("fetch", {}, source=page)[1] == "trusted"
    assert policy.standing("fetch", {"url": page}, source="https://evil.example/")[1] == "blocked"
    own = ToolPolicy({"fetch": {"source": "{url}", "level": "open"}})
    assert own.standing("fetch", {"url": new}) == (new, "open", trust("open"))
    assert own.standing("other", {"url": new}) == (None, "unknown", trust("unknown"))


def test_only_what_the_policy_of_sources_trusts_is_trusted() -> None:
    policy = ToolPolicy({"*": {"level": "trusted"}}, SOURCES)
    assert policy.trusts("https://handbook.example/a")
    assert not policy.trusts("https://new.example/a")
    assert not ToolPolicy({"*": {"level": "trusted"}}).trusts("https://handbook.example/a")


def test_names_that_look_alike_are_one() -> None:
    for one, other in (
        ("read_file", "Read-File"),
        ("paypal", "paypa1"),
        ("modern", "rnodern"),
        ("wiki", "vviki"),
        ("o|5", "0ls"),
    ):
        assert look_of(one) == look_of(other)
    assert look_of("read_file") != look_of("read_fill")
    assert look_of("read_file")


def test_a_tool_is_known_by_what_a_model_reads_of_it_and_by_its_server() -> None:
    tool = {"name": "fetch", "description": "Fetches.", "inputSchema": {"type": "object"}}
    first = tool_hash("server", tool)
    assert first.startswith("sha256:") and len(first) == 71
    assert (
        tool_hash("server", {**tool, "_meta": {"seen": 3}})
        == tool_hash("server", dict(reversed(tool.items())))
        == first
    )
    changed = [
        {**tool, name: "other"}
        for name in ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
    ]
    assert len({first, tool_hash("other", tool), *(tool_hash("server", one) for one in changed)}) == 8
    assert identity_of(["npx", "server"]) == identity_of(("npx", "server")) != identity_of("npx server")


def test_settings_have_ranges_and_their_ends_are_in_it() -> None:
    for threshold in (0, 1):
        assert ToolSettings(threshold=threshold).threshold == threshold
    for threshold in (-0.01, 1.01):
        with pytest.raises(OptionError, match="threshold"):
            ToolSettings(threshold=threshold)
    with pytest.raises(OptionError, match="source must be an address or a name, got 5"):
        ToolSettings(source=5)  # type: ignore[arg-type]
    for wrong in ("a text", ["", "a"], [5]):
        with pytest.raises(OptionError, match="allow must be a list of texts"):
            ToolSettings(allow=wrong)  # type: ignore[arg-type]


def test_as_many_tools_as_are_read_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.agents.policy.MAX_TOOLS", 2)
    assert ToolPolicy({"a": {}, "b": {}}).settings("a") == ToolSettings()
    with pytest.raises(OptionError, match="tools must be settings by the name of a tool"):
        ToolPolicy({"a": {}, "b": {}, "c": {}})


def test_a_source_that_is_given_precedes_that_of_the_settings() -> None:
    policy = ToolPolicy({"fetch": {"source": "{url}", "level": "open"}})
    assert policy.standing("fetch", {"url": "a.example"})[:2] == ("a.example", "open")
    assert policy.standing("fetch", {"url": "a.example"}, source="b.example")[:2] == ("b.example", "open")
    assert policy.standing("other", {})[:2] == (None, "unknown")


TOOLS = [{"name": "read_file", "description": "Reads."}, {"name": "fetch", "description": "Fetches."}]


def test_a_lock_file_approves_the_tools_of_a_server_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "tools.lock"
    lock = LockFile(path)
    assert (lock.servers, lock.approved("one", TOOLS[0]), path.exists()) == ({}, None, False)
    lock.approve("one", TOOLS)
    lock.approve("two", [{"name": "Fetch-1"}])
    again = LockFile(path)
    assert again.servers == lock.servers
    assert [again.approved("one", tool) for tool in TOOLS] == [True, True]
    assert again.approved("one", {**TOOLS[0], "description": "Reads all."}) is False
    assert again.approved("one", {"name": "write"}) is None
    assert again.approved("other", TOOLS[0]) is None
    assert again.others("one") == {look_of("Fetch-1")}
    assert again.others("two") == {look_of("read_file"), look_of("fetch")}
    again.approve("one", TOOLS[:1])
    assert LockFile(path).approved("one", TOOLS[1]) is None
    written = json.loads(path.read_text())
    assert (written["version"], path.read_text()[-2:]) == (LOCK_VERSION, "}\n")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"version": 1}', '{"version": 2, "servers": {}}', '{"version": 1, "servers": {"a": {}}}',
     '{"version": 1, "servers": {"a": 7}}', "[" * 90_000],
)  # fmt: skip
def test_what_is_no_lock_file_says_how_to_make_one(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tools.lock"
    path.write_text(content)
    with pytest.raises(InputError, match=r"is no lock file of this version; make one with .*--approve"):
        LockFile(path)


def test_a_lock_file_is_read_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tools.lock"
    LockFile(path).approve("one", TOOLS)
    size = path.stat().st_size
    monkeypatch.setattr("unpoison.agents.policy.MAX_LOCK_BYTES", size)
    assert LockFile(path).approved("one", TOOLS[0])
    monkeypatch.setattr("unpoison.agents.policy.MAX_LOCK_BYTES", size - 1)
    with pytest.raises(InputError, match="bytes; give a shorter file"):
        LockFile(path)
