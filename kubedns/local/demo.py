"""The demonstration: start everything, ask, show, check, and say how to go on.

In: options, the sample manifests.  Out: text for a person; whether every answer was right.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import dnslib

from kubedns.dns.client import DNSExchangeError
from kubedns.dns.whole import exchange
from kubedns.local.addon import Addon, places, say
from kubedns.local.failure import StartError
from kubedns.local.layout import HOST
from kubedns.local.options import CLASSIC, KUBEDNS_FIRST, UpOptions
from kubedns.local.questions import SAMPLES, Question, questions

_ASK_SECONDS: Final = 3.0
_DOORS: Final = {CLASSIC: "dnsmasq", KUBEDNS_FIRST: "kube-dns"}
_HELLO: Final = json.dumps(
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hello"}, "spec": {"ports": [{"port": 80}]}}
)


async def run_demo(options: UpOptions) -> int:
    """Run the demonstration; return 0 when every answer was right.  Raises StartError."""
    if not options.files:
        options = replace(options, files=(_samples(),))
    async with Addon(options) as addon:
        say(f"Starting the add-on on the manifests in {options.files[0]}.\n\n{places(addon)}\n")
        await addon.ready()
        asked = questions(options.domain)
        say(f"Ready. {len(asked)} questions, all through {_DOORS[options.wiring]}:\n\n")
        right = 0
        for number, question in enumerate(asked, 1):
            right += await _ask(number, question, addon.door)
        say(f"{right} of {len(asked)} answers are right.\n")
        if options.check:
            return 0 if right == len(asked) else 1
        say(_how_to_go_on(addon, options.domain))
        raise await addon.failed()


def _samples() -> Path:
    for base in (Path(), Path(__file__).resolve().parents[2]):
        if (base / SAMPLES).is_dir():
            return base / SAMPLES
    raise StartError(
        f"the sample manifests {SAMPLES}/ are not here; run this in a checkout, or name manifests"
    )


async def _ask(number: int, question: Question, port: int) -> bool:
    """Ask one question, show the answer, and return whether it was right."""
    say(f"{number:2}. {question.shows[0].upper()}{question.shows[1:]}\n")
    say(f"    $ dig @{HOST} -p {port} {question.qname} {question.qtype}\n")
    query = dnslib.DNSRecord.question(question.qname, question.qtype)
    try:
        reply = await exchange(query, (HOST, port), _ASK_SECONDS)
    except DNSExchangeError as error:
        say(f"    no answer: {error}\n    WRONG\n\n")
        return False
    rcode = str(dnslib.RCODE.get(reply.header.rcode))
    records = {f"{dnslib.QTYPE.get(record.rtype)} {record.rdata}" for record in reply.rr}
    say(f"    {rcode}{'' if records or rcode != 'NOERROR' else ', no records of this type (NODATA)'}\n")
    for record in reply.rr:
        say(f"    {record.rname}  {record.ttl}  IN  {dnslib.QTYPE.get(record.rtype)}  {record.rdata}\n")
    right = rcode == question.rcode and records == question.records
    if right:
        say("    right\n\n")
    else:
        wanted = ", ".join(sorted(question.records)) or "no records"
        say(f"    WRONG: {question.rcode} with {wanted} is right\n\n")
    return right


def _how_to_go_on(addon: Addon, domain: str) -> str:
    ports, config = addon.ports, addon.config_dir
    dig = f"dig @{HOST} -p {addon.door}"
    kubectl = f"kubectl --server=http://{HOST}:{ports.api}"
    return f"""
Go on yourself; all of it runs until Ctrl-C.

  Ask:            {dig} web.shop.svc.{domain}
  Look:           {kubectl} get services,endpointslices -A
  Make a Service: echo '{_HELLO}' \\
                    | {kubectl} apply -f -
                  {dig} hello.default.svc.{domain}
  Route a domain: echo '{{"corp.example": ["127.0.0.1:5300"]}}' > {config}/stubDomains
  Health:         curl http://{HOST}:{ports.healthz}/healthcheck/kubedns
                  curl http://{HOST}:{ports.readiness}/readiness
"""
