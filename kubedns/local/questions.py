"""The demo's questions: what each shows, and the answer that is right.

The names are those of the sample manifests.  Answers are sets, because their order turns
from one query to the next; records are written as dig writes them, without TTL.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Question:
    """One question and its right answer; each record is `TYPE RDATA`."""

    shows: str
    qname: str
    qtype: str
    records: frozenset[str] = frozenset()
    rcode: str = "NOERROR"


def _question(shows: str, question: str, *records: str, rcode: str = "NOERROR") -> Question:
    qname, qtype = question.split()
    return Question(shows, qname, qtype, frozenset(records), rcode)


def questions(domain: str) -> list[Question]:
    """Return the questions about the sample manifests in a cluster of this domain."""
    svc = f"svc.{domain}"
    return [
        _question("a Service with a cluster IP", f"web.shop.{svc} A", "A 10.96.0.20"),
        _question("the same for IPv6, which it has not: NODATA, not NXDOMAIN", f"web.shop.{svc} AAAA"),
        _question("a dual-stack Service, IPv4", f"checkout.shop.{svc} A", "A 10.96.0.21"),
        _question("a dual-stack Service, IPv6", f"checkout.shop.{svc} AAAA", "AAAA fd00:10:96::21"),
        _question(
            "a named port: where https of web is",
            f"_https._tcp.web.shop.{svc} SRV",
            f"SRV 10 100 443 web.shop.{svc}.",
        ),
        _question(
            "a headless Service: its ready endpoints, db-2 is not",
            f"db.shop.{svc} A",
            "A 10.244.1.10",
            "A 10.244.2.10",
        ),
        _question("one pod of a StatefulSet by its name", f"db-1.db.shop.{svc} A", "A 10.244.2.10"),
        _question(
            "a named port of a headless Service: one target per endpoint",
            f"_postgres._tcp.db.shop.{svc} SRV",
            f"SRV 10 50 5432 db-0.db.shop.{svc}.",
            f"SRV 10 50 5432 db-1.db.shop.{svc}.",
        ),
        _question("whose cluster IP this is", "20.0.96.10.in-addr.arpa PTR", f"PTR web.shop.{svc}."),
        _question("which pod this is", "10.1.244.10.in-addr.arpa PTR", f"PTR db-0.db.shop.{svc}."),
        _question(
            "an ExternalName, followed inside the zone",
            f"storefront.billing.{svc} A",
            f"CNAME web.shop.{svc}.",
            "A 10.96.0.20",
        ),
        _question("a pod by its address", f"10-244-1-10.shop.pod.{domain} A", "A 10.244.1.10"),
        _question("a Service that does not exist", f"nosuch.shop.{svc} A", rcode="NXDOMAIN"),
        _question("the version of the DNS specification", f"dns-version.{domain} TXT", 'TXT "1.1.0"'),
    ]


SAMPLES: Final = "deploy/local"
"""Where the sample manifests are in a checkout."""
