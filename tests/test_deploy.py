"""The files under deploy/: that they fit the service as it is, and each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.main import get_command

from unpoison import __version__
from unpoison.cli import app
from unpoison.serve import Bounds
from unpoison.serve.server import KEEP_ALIVE

DEPLOY = Path(__file__).parent.parent / "deploy"


def read(name: str) -> str:
    return (DEPLOY / name).read_text()


def options() -> set[str]:
    settings_found = get_command(app).commands["serve"].params  # type: ignore[attr-defined]
    return {
        option.removeprefix("--")
        for parameter in settings_found
        for option in parameter.opts
        if option.startswith("--")
    }


def manifests() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all(read("kubernetes.yaml"))}


def limits() -> list[Bounds]:
    """What each file says of times."""
    compose = yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]["environment"]["UNPOISON_SERVE_LIMIT"]
    (unit,) = re.findall(r'"UNPOISON_SERVE_LIMIT=([^"]*)"', read("unpoison.service"))
    cluster = manifests()["ConfigMap"]["data"]["UNPOISON_SERVE_LIMIT"]
    return [Bounds.of(text.split()) for text in (compose, unit, cluster)]


def test_the_end_fits_into_the_time_that_is_given() -> None:
    container = manifests()["Deployment"]["spec"]["template"]["spec"]
    compose = yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]["stop_grace_period"]
    stop = re.search(r"TimeoutStopSec=(\d+)", read("unpoison.service"))
    assert stop is not None
    for bounds in limits():
        assert bounds.timeout < bounds.grace
        for given in (container["terminationGracePeriodSeconds"], int(compose.removesuffix("s")), int(stop[1])):
            assert bounds.grace + 5 < given, "Kubernetes waits five seconds before it sends SIGTERM"


def test_options_of_every_command_line_exist() -> None:
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    lines = [
        container["args"],
        yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]["command"],
        re.findall(r"ExecStart=(.*)", read("unpoison.service"))[0].split(),
    ]
    for line in lines:
        assert "serve" in line
        assert {word.removeprefix("--") for word in line if word.startswith("--")} <= options()


def test_names_of_variables_are_options() -> None:
    for name in ("Dockerfile", "compose.yaml", "kubernetes.yaml", "unpoison.service"):
        for variable in re.findall(r"UNPOISON_SERVE_([A-Z_]+)=", read(name)):
            assert variable.lower().replace("_", "-") in options()


def test_probes_ask_what_the_service_answers_without_a_key() -> None:
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    paths = {container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert paths == {"/readyz", "/healthz"}
    assert "/readyz" in read("Dockerfile")


def test_nobody_is_root_and_nothing_can_be_written() -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    own = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert own["readOnlyRootFilesystem"]
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert not pod["enableServiceLinks"]
    assert str(pod["securityContext"]["runAsUser"]) in re.findall(r"USER (\d+)", read("Dockerfile"))
    compose = yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]
    assert compose["read_only"]
    assert compose["cap_drop"] == ["ALL"]


def test_the_build_is_given_what_it_needs_and_no_more() -> None:
    allowed = {line.removeprefix("!") for line in read("Dockerfile.dockerignore").split() if line.startswith("!")}
    lines = re.findall(r"^COPY (?!--)(.*) \S+$", read("Dockerfile"), re.MULTILINE)
    assert {name for line in lines for name in line.split()} == allowed
    extras = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for names in re.findall(r"EXTRAS=([\w,]+)", read("Dockerfile")):
        assert set(names.split(",")) <= set(extras)


def test_whatever_listens_to_others_is_given_keys() -> None:
    assert "UNPOISON_SERVE_HOST=0.0.0.0" in read("Dockerfile")
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert "--keys" in container["args"]
    assert "--keys" in yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]["command"]
    for text in (read("Dockerfile"), (DEPLOY.parent / "docs" / "production.md").read_text()):
        command = re.sub(r"\\\n#?", "", text[text.index("docker run") :]).split("\n")[0]
        assert "UNPOISON_API_KEY" in command


def test_nginx_ends_connections_before_the_service_does() -> None:
    (nginx,) = re.findall(r"keepalive_timeout (\d+)s", read("nginx.conf"))
    assert int(nginx) < KEEP_ALIVE


def test_the_image_is_one_that_the_cluster_has() -> None:
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"unpoison:{__version__}"


def locked(name: str) -> dict[str, list[str]]:
    """The hashes of a lock file by requirement."""
    found: dict[str, list[str]] = {}
    for line in read(name).replace("\\\n", "").splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split()
            found[requirement] = [one.removeprefix("--hash=sha256:") for one in hashes]
    return found


def test_the_image_installs_what_has_the_hash_of_the_lock_and_what_the_project_requires() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)", read("Dockerfile"), re.MULTILINE)
    wanted = [*project["project"]["dependencies"]]
    wanted += [one for extra in extras.split(",") for one in project["project"]["optional-dependencies"][extra]]
    for name, required in (("image.lock", wanted), ("build.lock", project["build-system"]["requires"])):
        versions = dict(one.split("==") for one in locked(name))
        for one in map(Requirement, required):
            assert one.specifier.contains(versions[canonicalize_name(one.name)]), one
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for hashes in locked(name).values() for digest in hashes)
        assert all(locked(name).values())
        assert "://" not in read(name)
        assert f"--require-hashes -r locks/{name}" in read("Dockerfile")


def workflows() -> str:
    return "".join(path.read_text() for path in sorted((DEPLOY.parent / ".github" / "workflows").iterdir()))


def test_actions_are_named_by_commit_and_the_checks_of_the_service_are_run() -> None:
    used = re.findall(r"^[\s-]*uses:\s*(\S+)", workflows(), re.MULTILINE)
    assert len(used) == workflows().count("uses:") > 0
    for action in used:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", action), action
    run = {word for line in re.findall(r"run: make (.*)", workflows()) for word in line.split()}
    assert {"test", "conformance", "lowest", "seeded", "sbom", "lint", "types", "imports", "speed"} <= run


def test_a_library_whose_internals_are_used_has_an_upper_bound() -> None:
    extras = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    inner = {"uvicorn": "serve", "h11": "serve", "mcp": "mcp"}
    for name, extra in inner.items():
        (one,) = (found for found in map(Requirement, extras[extra]) if found.name == name)
        assert any(bound.operator in ("<", "==") for bound in one.specifier), one
