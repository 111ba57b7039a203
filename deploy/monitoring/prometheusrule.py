"""alerts.yaml -> prometheusrule.yaml: the same rules as an object of the Prometheus operator.

Run by `make rules`.  The text of the rules is carried over as it is, below `spec`.
"""

import sys
from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent
_HEAD: Final = """\
# Made from alerts.yaml by `make rules`; edit that.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: kube-dns
  namespace: kube-system
  labels:
    k8s-app: kube-dns
spec:
"""


def prometheus_rule(alerts: str) -> str:
    """Return the operator's object with the groups of a rule file."""
    lines = alerts[alerts.index("groups:") :].splitlines()
    return _HEAD + "".join(f"  {line}\n" if line else "\n" for line in lines)


def main() -> int:
    """Write prometheusrule.yaml beside alerts.yaml."""
    text = prometheus_rule((DIRECTORY / "alerts.yaml").read_text(encoding="utf-8"))
    (DIRECTORY / "prometheusrule.yaml").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
