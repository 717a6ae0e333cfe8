"""Optional libraries: imported when they are needed, and named with the command that installs them."""

from __future__ import annotations

import sys

import pytest

from unpoison.errors import MissingExtraError
from unpoison.utils import extras
from unpoison.utils.extras import install_command, lazy_names, require, wire, wired


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"the engine needs ray; run: pip install .*\[ray\]"):
        require("ray", "the engine")
    with pytest.raises(MissingExtraError, match=r"x needs no_such_library; run: pip install no_such_library$"):
        require("no_such_library.inner", "x")
    assert require("json", "x").dumps([]) == "[]"


def test_an_error_inside_an_installed_library_passes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_library.py").write_text("import no_such_library")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_library") as error:
        require("broken_library", "x")
    assert not isinstance(error.value, MissingExtraError)


def test_the_command_names_this_clone_or_the_repository(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "packages/unpoison-reader -e" in install_command("reader", "serve")
    assert "packages/unpoison-reader-multilingual -e" in install_command("reader")
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    assert install_command("serve") == f"pip install 'unpoison[serve] @ {extras.REPOSITORY}'"
    assert "#subdirectory=packages/unpoison-reader'" in install_command("reader")
    monkeypatch.setattr(extras, "REPOSITORY", "")
    assert install_command("serve", "mcp") == "pip install 'unpoison[serve,mcp]'"


def test_names_are_imported_when_they_are_used() -> None:
    public = lazy_names("json", {"decoder": "JSONDecoder JSONDecodeError", "unpoison.errors": "clip"})
    assert public("JSONDecoder").__module__ == "json.decoder"
    assert public("clip").__module__ == "unpoison.errors"
    with pytest.raises(AttributeError, match="'json' has no attribute 'nothing'"):
        public("nothing")


def test_a_purpose_is_served_by_who_was_named() -> None:
    wire({"test purpose": "json:dumps", "test module": "json"})
    assert wired("test purpose")([]) == "[]"
    assert wired("test module").loads("[]") == []
    assert wired("nobody's purpose") is None


def test_a_module_without_an_entry_is_of_the_extra_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = frozenset({"my-framework", "serve"})
    monkeypatch.setattr(extras, "_extras", lambda: declared)
    with pytest.raises(MissingExtraError, match=r"my_framework; run: .*\[my-framework\]"):
        require("my_framework", "the adapter")
    with pytest.raises(MissingExtraError, match="run: pip install other_framework"):
        require("other_framework", "the adapter")
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "uvicorn" else object())
    assert extras.installed_extras() == ["my-framework"]
