"""The files under deploy/: that they fit the service as it is, and each other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from unpoison import __version__
from unpoison.cli import app
from unpoison.serve import Bounds
from unpoison.serve.metrics import Metrics
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
            assert bounds.drain + bounds.grace < given


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


def test_dashboard_and_alerts_ask_for_metrics_that_there_are() -> None:
    known = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    known |= {f"{family.name}_total" for family in Metrics().registry.collect() if family.type == "counter"}
    known |= {f"{family.name}_bucket" for family in Metrics().registry.collect() if family.type == "histogram"}
    rules = [rule["expr"] for group in yaml.safe_load(read("alerts.yml"))["groups"] for rule in group["rules"]]
    panels = json.loads(read("grafana.json"))["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    used = {name for text in rules + expressions for name in re.findall(r"\b((?:unpoison|process)_\w+)\b", text)}
    assert len(used) >= 10
    assert used <= known | {"process_resident_memory_bytes", "process_cpu_seconds_total"}
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_every_metric_is_on_the_dashboard() -> None:
    for family in Metrics().registry.collect():
        if family.name.startswith("unpoison_"):
            assert family.name in read("grafana.json"), family.name


def test_proxies_end_connections_before_the_service_does() -> None:
    (nginx,) = re.findall(r"keepalive_timeout (\d+)s", read("nginx.conf"))
    (caddy,) = re.findall(r"keepalive (\d+)s", read("Caddyfile"))
    (cluster,) = yaml.safe_load(read("envoy.yaml"))["static_resources"]["clusters"]
    (upstream,) = cluster["typed_extension_protocol_options"].values()
    envoy = upstream["common_http_protocol_options"]["idle_timeout"].removesuffix("s")
    assert max(int(nginx), int(caddy), int(envoy)) < KEEP_ALIVE


def test_envoy_hides_the_metrics_before_anything_else_and_takes_what_the_service_takes() -> None:
    (listener,) = yaml.safe_load(read("envoy.yaml"))["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    first, second = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert first == {"match": {"path_separated_prefix": "/unpoison/metrics"}, "direct_response": {"status": 404}}
    assert second["match"]["prefix"] == "/unpoison/"
    assert "retry_policy" not in second["route"]
    assert manager["normalize_path"] is True
    bodies = [one["typed_config"].get("max_request_bytes") for one in manager["http_filters"]]
    assert Bounds().body in bodies


def test_the_build_is_given_what_it_needs_and_no_more() -> None:
    allowed = {line.removeprefix("!") for line in read("Dockerfile.dockerignore").split() if line.startswith("!")}
    lines = re.findall(r"^COPY (?!--)(.*) \S+$", read("Dockerfile"), re.MULTILINE)
    assert {name for line in lines for name in line.split()} == allowed
    extras = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for names in re.findall(r"EXTRAS=([\w,]+)", read("Dockerfile")):
        assert set(names.split(",")) <= set(extras)


def test_the_unit_is_one() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("SYSTEMD ABSENT: the unit is not checked")
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(DEPLOY / "unpoison.service")], capture_output=True, text=True, timeout=300
    )
    left = [line for line in checked.stderr.splitlines() if "/opt/unpoison/bin/unpoison is not executable" not in line]
    assert not [line for line in left if "unpoison.service" in line], left


def test_a_step_of_the_build_that_fails_ends_it(tmp_path: Path) -> None:
    """The chain of the first stage with commands that only say that they were called, and one that fails."""
    (chain,) = re.findall(r"^RUN ((?:.*\\\n)*.*)$", read("Dockerfile"), re.MULTILINE)
    places = {"/opt/unpoison": str(tmp_path / "opt"), "${EXTRAS}": "serve"}
    for name, own in places.items():
        chain = chain.replace(name, own)
    calls = tmp_path / "calls"
    tools = tmp_path / "opt" / "bin"
    tools.mkdir(parents=True)
    for name in ("python", "pip", "unpoison"):
        (tools / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {calls}\ncase "{name} $*" in *$FAILS*) exit 1;; esac\n'
        )
        (tools / name).chmod(0o755)

    def status(fails: str) -> int:
        path = f"{tools}:/usr/bin:/bin"
        return subprocess.run(["sh", "-c", chain], env={"PATH": path, "FAILS": fails}, timeout=300).returncode

    assert status("nothing") == 0
    assert [line.split()[0] for line in calls.read_text().splitlines()] == [
        "python",
        "pip",
        "pip",
        "unpoison",
        "python",
    ]
    for fails in ("pip install", "pip uninstall", "-m venv", "unpoison --version"):
        assert status(fails) != 0, fails
    assert status("compileall") == 0  # some packages hold files that are no Python


def test_the_image_is_one_that_the_cluster_has() -> None:
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"unpoison:{__version__}"
    assert container["imagePullPolicy"] == "IfNotPresent"


def test_metrics_are_asked_for_with_a_key() -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["metadata"]
    assert "annotations" not in pod  # they could give no key
    (scrape,) = yaml.safe_load(read("prometheus.yml"))["scrape_configs"]
    assert scrape["authorization"]["credentials_file"]
    monitor = yaml.safe_load(read("servicemonitor.yaml"))
    (endpoint,) = monitor["spec"]["endpoints"]
    service = manifests()["Service"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["authorization"]["credentials"]["key"]


def test_whatever_listens_to_others_is_given_keys() -> None:
    assert "UNPOISON_SERVE_HOST=0.0.0.0" in read("Dockerfile")
    container = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert "--keys" in container["args"]
    assert "--keys" in yaml.safe_load(read("compose.yaml"))["services"]["unpoison"]["command"]
    for text in (read("Dockerfile"), (DEPLOY.parent / "docs" / "production.md").read_text()):
        command = re.sub(r"\\\n#?", "", text[text.index("docker run") :]).split("\n")[0]
        assert "UNPOISON_API_KEY" in command


@pytest.mark.skipif(shutil.which("docker") is None, reason="DOCKER ABSENT: compose.yaml is not checked")
def test_compose_takes_its_file() -> None:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, timeout=300).returncode:
        pytest.skip("DOCKER COMPOSE ABSENT: compose.yaml is not checked")
    command = ["docker", "compose", "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert checked.returncode == 0, checked.stderr
