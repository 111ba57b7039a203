"""deploy/monitoring: rules pass promtool, the operator's copy is the same, queries parse, ports exist."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.monitoring.prometheusrule import prometheus_rule
from tests.tools import tool

pytestmark = pytest.mark.integration

DEPLOY = Path(__file__).parents[2] / "deploy"
MONITORING = DEPLOY / "monitoring"


def promtool(*arguments: str, cwd: Path = MONITORING) -> str:
    ended = subprocess.run(
        [tool("promtool:prometheus"), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def load(name: str) -> Any:
    return yaml.safe_load((MONITORING / name).read_text())


def rules() -> list[dict[str, Any]]:
    return [rule for group in load("alerts.yaml")["groups"] for rule in group["rules"]]


def dashboard_panels() -> list[dict[str, Any]]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    return list(dashboard["panels"])


def test_rules_are_valid_and_do_what_their_tests_say():
    promtool("check", "rules", "alerts.yaml")
    promtool("test", "rules", "alerts.test.yaml")


def test_every_alert_is_fired_by_a_rule_test():
    tests = (MONITORING / "alerts.test.yaml").read_text()
    assert [rule["alert"] for rule in rules() if rule["alert"] not in tests] == []


def test_every_alert_says_how_bad_it_is_and_what_to_do():
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert {"summary", "description", "runbook"} <= rule["annotations"].keys()


def test_operators_rules_are_made_of_the_rule_file():
    made = prometheus_rule((MONITORING / "alerts.yaml").read_text())
    assert (MONITORING / "prometheusrule.yaml").read_text() == made, "run make rules"
    assert yaml.safe_load(made)["spec"]["groups"] == load("alerts.yaml")["groups"]


def test_readme_lists_every_alert():
    readme = (MONITORING / "README.md").read_text()
    assert [
        rule["alert"]
        for rule in rules()
        if f"| {rule['alert']} | {rule['labels']['severity']} |" not in readme
    ] == []


def test_scrape_configuration_is_valid(tmp_path):
    config = load("scrape.yaml")
    for job in config["scrape_configs"]:
        # Debian's promtool is built without the discovery of Kubernetes.
        job.pop("kubernetes_sd_configs")
        job["static_configs"] = [{"targets": ["127.0.0.1:1"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    promtool("check", "config", "prometheus.yml", cwd=tmp_path)


def test_dashboards_queries_parse(tmp_path):
    queries = [target["expr"] for panel in dashboard_panels() for target in panel.get("targets", ())]
    assert len(queries) > 30
    recorded = [
        {"record": f"query_{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    (tmp_path / "rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]})
    )
    promtool("check", "rules", "rules.yml", cwd=tmp_path)


def test_dashboard_panels_do_not_overlap_and_are_explained():
    taken: set[tuple[int, int]] = set()
    for panel in dashboard_panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or panel["description"]
    identifiers = [panel["id"] for panel in dashboard_panels()]
    assert len(identifiers) == len(set(identifiers))


def test_scraped_ports_are_the_deployments():
    deployment = yaml.safe_load((DEPLOY / "base" / "deployment.yaml").read_text())
    containers = deployment["spec"]["template"]["spec"]["containers"]
    named = {port["name"] for container in containers for port in container.get("ports", ())}
    scraped = {endpoint["port"] for endpoint in load("podmonitor.yaml")["spec"]["podMetricsEndpoints"]}
    assert scraped <= named
    keep = load("scrape.yaml")["scrape_configs"][0]["relabel_configs"][0]["regex"]
    assert (
        keep == f"kube-dns;({'|'.join(sorted(scraped, key=['metrics', 'metrics-nanny', 'healthz'].index))})"
    )
