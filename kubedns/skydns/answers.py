"""Question -> what the zone has to say: the rules of cluster DNS, without sockets or waiting.

In: a query for a name that is ours, and the backend.  Out: an `Answer`, or, where an alias leads
out of the zone, a `Chain` that somebody else must take further.  Source: DNS-Based Service
Discovery 1.1.0; RFC 1034 3.6.2 (aliases), RFC 2308 (negative answers), RFC 6604 (the rcode speaks
of the last name), RFC 8020 (NXDOMAIN means nothing below); SkyDNS for the SRV weights.
"""

import logging
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kubedns.backend import Backend, BackendError, ServiceRecord, TooWideError
from kubedns.dns import numbers
from kubedns.dns.names import Labels, to_text
from kubedns.dns.records import Resolution, UpstreamRecord
from kubedns.skydns.chain import Chain, alias_of, lower
from kubedns.skydns.response import Answer
from kubedns.skydns.rrset import Rdata, RRset, address_rrset, name_rrset, soa_rrset, srv_rdata, txt_rrset

_log = logging.getLogger(__name__)
DNS_SCHEMA_VERSION: Final = b"1.1.0"
"""Of the DNS-Based Service Discovery specification; the TXT record at dns-version."""
SOA_TTL: Final = 3600
_RECORD_OCTETS: Final = 12
"""Of a record whose owner is a pointer, before its data."""
_KEPT_TYPES = frozenset((numbers.A, numbers.AAAA, numbers.SRV))


@dataclass(frozen=True, slots=True)
class Policy:
    """How the zone is served: TTLs in seconds, and whether `*` is a wildcard."""

    ttl: int = 30
    negative_ttl: int = 60
    wildcards: bool = True


class ZoneAnswers:
    """Answers for one zone.  `serial` is the SOA's, set from outside as time passes."""

    def __init__(self, backend: Backend, policy: Policy) -> None:
        self._backend = backend
        self._policy = policy
        self._zone = backend.domain
        self.serial = 0

    @property
    def ttl(self) -> int:
        """TTL of the zone's records, in seconds."""
        return self._policy.ttl

    def owns(self, name: Labels) -> bool:
        """Whether a lower-case name is in the cluster domain."""
        return name[-len(self._zone) :] == self._zone

    def has(self, name: Labels) -> bool:
        """Whether a lower-case name is answered here: in the cluster domain, or a reverse name of ours."""
        return self.owns(name) or self._backend.reverse_record(name) is not None

    def resolve(self, name: Labels, qtype: int) -> Answer | Chain:
        """Answer a question for a name of the zone."""
        try:
            return self.follow(Chain(qtype, name))
        except TooWideError:
            return Answer(numbers.REFUSED, authoritative=False)

    def follow(self, chain: Chain) -> Answer | Chain:
        """Take a chain further, whose target is answered here."""
        while True:
            if not self.owns(chain.target):
                return self._complete(
                    chain, self.reverse(chain.target, chain.qtype) or self.negative(numbers.NXDOMAIN)
                )
            try:
                found = self._at(chain.target, chain.qtype, asked=not chain.links)
            except BackendError as error:
                _log.debug("%s: %s", to_text(chain.target), error)
                return self.unresolved(chain)
            if isinstance(found, Answer):
                return self._complete(chain, found)
            self._step(chain, found)
            if chain.broken():
                return Answer(numbers.SERVFAIL)
            if not self.has(chain.target):
                return chain

    def reverse(self, name: Labels, qtype: int) -> Answer | None:
        """Answer a question for a reverse name; None where no address of ours has it."""
        names = self._backend.reverse_record(name)
        if names is None:
            return None
        if qtype == numbers.PTR:
            return Answer(answer=[name_rrset(name, numbers.PTR, self._policy.ttl, names)])
        return Answer(authority=[self._soa(name, self._policy.negative_ttl)])

    def absorb(self, chain: Chain, said: Resolution) -> Answer | Chain:
        """Add what an upstream said of a chain's target.

        Its records follow the chain's with their owners, TTLs capped at our own.  A Chain comes
        back where its last alias leads into the zone again, or to a name that it says nothing of, as
        the server of a stub domain does of other domains.
        """
        asked = chain.target
        records = [record for record in said.records if record.rtype in (numbers.CNAME, chain.qtype)]
        while (alias := alias_of(chain.target, records)) is not None and chain.qtype != numbers.CNAME:
            target = lower(alias.target)
            chain.seen.add(chain.target)
            chain.links.append(self._upstream_rrset(alias.owner, numbers.CNAME, [alias.record]))
            chain.target = target
            if chain.broken():
                return Answer(numbers.SERVFAIL)
        own = [
            record
            for record in records
            if said.rcode == numbers.NOERROR
            and record.rtype == chain.qtype
            and lower(record.owner) == chain.target
        ]
        size = numbers.ADDRESS_OCTETS.get(chain.qtype)
        if size is not None and any(len(record.rdata) != size for record in own):
            return self.unresolved(chain)
        silent = said.rcode == numbers.NOERROR and not own and said.soa is None
        if self.has(chain.target) or (silent and chain.target != asked):
            return chain
        found = Answer(said.rcode if said.rcode in (numbers.NOERROR, numbers.NXDOMAIN) else numbers.SERVFAIL)
        if own:
            found.answer = [self._upstream_rrset(own[0].owner, chain.qtype, own)]
        elif said.soa is not None and found.rcode != numbers.SERVFAIL:
            found.authority = [self._upstream_rrset(said.soa.owner, numbers.SOA, [said.soa])]
        return self._complete(chain, found)

    def unresolved(self, chain: Chain) -> Answer:
        """Return SERVFAIL with the aliases that were followed."""
        return self._complete(chain, Answer(numbers.SERVFAIL))

    def negative(self, rcode: int) -> Answer:
        """Return NXDOMAIN, or NODATA for NOERROR, with the zone's SOA (RFC 2308 2)."""
        return Answer(rcode, authority=[self._soa(self._zone, self._policy.negative_ttl)])

    def _complete(self, chain: Chain, found: Answer) -> Answer:
        if not chain.links:
            return found
        turned = [_turn(rrset) for rrset in found.answer]
        return replace(found, answer=[*chain.links, *turned], keep=False)

    def _step(self, chain: Chain, target: Labels) -> None:
        chain.seen.add(chain.target)
        chain.links.append(name_rrset(chain.target, numbers.CNAME, self._policy.ttl, (target,)))
        chain.target = target

    def _at(self, name: Labels, qtype: int, *, asked: bool) -> Answer | Labels:
        """Return what is at one name of the zone, or the target of the alias there.

        Only in the name that was asked for is `*` a wildcard.  Of several records that it finds
        the aliases are left out, as one name cannot have two (RFC 2181 10.1).
        """
        if name == self._zone:
            return self._apex(qtype)
        if qtype == numbers.TXT and name == (b"dns-version", *self._zone):
            return Answer(answer=[txt_rrset(name, self._policy.ttl, DNS_SCHEMA_VERSION)])
        wild = asked and b"*" in name
        refused = wild and not self._policy.wildcards
        records = None if refused else self._backend.records(name, exact=not wild)
        if records is None:
            return self.negative(numbers.NXDOMAIN)
        aliases = [record.host for record in records if not record.port and isinstance(record.host, tuple)]
        if aliases:
            alias = min(aliases)
            records = tuple(record for record in records if record.port or isinstance(record.host, bytes))
            if not records:
                own = name_rrset(name, numbers.CNAME, self._policy.ttl, (alias,))
                return Answer(answer=[own]) if qtype == numbers.CNAME else alias
        found = self._typed(name, qtype, records)
        if wild:
            return replace(found, answer=[_turn(rrset) for rrset in found.answer], keep=False)
        return found

    def _typed(self, name: Labels, qtype: int, records: Sequence[ServiceRecord]) -> Answer:
        answer = Answer(keep=qtype in _KEPT_TYPES)
        if qtype in numbers.ADDRESS_OCTETS:
            addresses = tuple(dict.fromkeys(self._addresses(records, numbers.ADDRESS_OCTETS[qtype])))
            if addresses:
                answer.answer = [address_rrset(name, qtype, self._policy.ttl, addresses)]
        elif qtype == numbers.SRV:
            answer.answer, answer.additional = self._srv(name, records)
        if not answer.answer:
            answer.authority = self.negative(numbers.NOERROR).authority
        return answer

    def _addresses(self, records: Iterable[ServiceRecord], size: int) -> Iterable[bytes]:
        """Yield the addresses of one family; an SRV record has those of its target."""
        targets: dict[Labels, None] = {}
        for record in records:
            if isinstance(record.host, bytes):
                if len(record.host) == size:
                    yield record.host
            else:
                targets[record.host] = None
        for target in targets:
            for record in self._backend.records(target, exact=True) or ():
                if isinstance(record.host, bytes) and len(record.host) == size:
                    yield record.host

    def _srv(self, name: Labels, records: Sequence[ServiceRecord]) -> tuple[list[RRset], list[RRset]]:
        """Return the SRV records and the addresses of their targets.

        An address record has port 0 and itself as target.  Weights share 100 among the records
        before equal ones merge, as in SkyDNS.  Differs: none is 0, which takes a server out.  Where no message holds all of them there are no
        addresses: the records turn, so that all are seen in time.
        """
        named = [record for record in records if record.owner is not None]
        if not named:
            return [], []
        weight = max(1, 100 // len(named))
        targets: dict[Labels, list[bytes]] = {}
        rdatas: dict[Rdata, None] = {}
        octets = 0
        for record in named:
            target = record.host if isinstance(record.host, tuple) else record.owner
            assert target is not None
            rdata = srv_rdata(weight, record.port, target)
            if rdata not in rdatas:
                octets += _RECORD_OCTETS + len(rdata[0])
                rdatas[rdata] = None
            known = targets.setdefault(target, [])
            if isinstance(record.host, bytes):
                known.append(record.host)
        answer = RRset(name, numbers.SRV, self._policy.ttl, tuple(rdatas))
        if octets > numbers.LARGEST_MESSAGE:
            return [answer], []
        if len(targets) > 1:
            self._look_up_siblings(targets)
        return [answer], [rrset for target, known in targets.items() for rrset in self._glue(target, known)]

    def _look_up_siblings(self, targets: Mapping[Labels, list[bytes]]) -> None:
        """Fill in the addresses of targets right below one name, as the endpoints of a Service are, by one look."""
        unknown = {target: known for target, known in targets.items() if not known}
        for parent, count in Counter(target[1:] for target in unknown).items():
            siblings = (self._backend.records(parent, exact=True) or ()) if count > 1 else ()
            for record in siblings:
                if record.owner is not None and record.owner in unknown and isinstance(record.host, bytes):
                    unknown[record.owner].append(record.host)

    def _glue(self, target: Labels, known: Sequence[bytes]) -> Iterable[RRset]:
        if not known:
            records = self._backend.records(target, exact=True) or ()
            known = [record.host for record in records if isinstance(record.host, bytes)]
        distinct = dict.fromkeys(known)
        for rtype, size in numbers.ADDRESS_OCTETS.items():
            addresses = tuple([address for address in distinct if len(address) == size])
            if addresses:
                yield address_rrset(target, rtype, self._policy.ttl, addresses)

    def _apex(self, qtype: int) -> Answer:
        if qtype == numbers.SOA:
            return Answer(answer=[self._soa(self._zone, SOA_TTL)])
        if qtype != numbers.NS:
            return self.negative(numbers.NOERROR)
        server = (b"ns", b"dns", *self._zone)
        return Answer(
            answer=[name_rrset(self._zone, numbers.NS, self._policy.ttl, (server,))],
            additional=list(self._glue(server, ())),
        )

    def _soa(self, owner: Labels, ttl: int) -> RRset:
        return soa_rrset(owner, self._zone, ttl, self.serial, self._policy.negative_ttl)

    def _upstream_rrset(self, owner: Labels, rtype: int, records: Sequence[UpstreamRecord]) -> RRset:
        ttl = min(self._policy.ttl, *(record.ttl for record in records))
        return RRset(owner, rtype, ttl, tuple(dict.fromkeys((record.rdata,) for record in records)))


def _turn(rrset: RRset) -> RRset:
    """Return the records beginning anywhere: an answer that is not kept turns by chance."""
    start = random.randrange(len(rrset.rdatas))
    return rrset._replace(rdatas=rrset.rdatas[start:] + rrset.rdatas[:start])
