"""Question -> what the zone has to say: the rules of cluster DNS, without sockets or waiting.

In: a query for a name that is ours, and the backend.  Out: an `Answer`, or, where an alias leads
out of the zone, a `Chain` that somebody else must take further.  Source: DNS-Based Service
Discovery 1.1.0; RFC 1034 3.6.2 (aliases), RFC 2308 (negative answers), RFC 6604 (the rcode speaks
of the last name), RFC 8020 (NXDOMAIN means nothing below); SkyDNS for the SRV weights.
"""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from kubedns.backend import Alias, Backend, BackendError, Found, Records, TooWideError
from kubedns.dns import numbers
from kubedns.dns.names import Labels, address_of_reverse, to_text, to_wire
from kubedns.dns.records import Resolution, Said, UpstreamRecord
from kubedns.shared.hosts import Hosts
from kubedns.skydns.budget import Budget
from kubedns.skydns.chain import Chain, alias_of, lower
from kubedns.skydns.response import Answer
from kubedns.skydns.rrset import RRset, name_rrset, soa_rrset, srv_rdata, txt_rrset

_log = logging.getLogger(__name__)
_RESOLVER_ARPA: Final = (b"resolver", b"arpa")
DNS_SCHEMA_VERSION: Final = b"1.1.0"
"""Of the DNS-Based Service Discovery specification; the TXT record at dns-version."""
SOA_TTL: Final = 3600
_MOST_COMPLAINTS: Final = 100
"""Names with broken chains that are logged."""
_RECORD_OCTETS: Final = 12
"""Of a record whose owner is a pointer, before its data."""
_SRV_OCTETS: Final = 6
"""Of the data of an SRV record before its target (RFC 2782)."""
_T = TypeVar("_T")
_KEPT_TYPES = frozenset((numbers.A, numbers.AAAA, numbers.SRV))


@dataclass(frozen=True, slots=True)
class Policy:
    """How the zone is served: TTLs in seconds, whether `*` is a wildcard, and names that one may look at."""

    ttl: int = 30
    negative_ttl: int = 60
    wildcards: bool = True
    wildcard_names: int = 1000


class ZoneAnswers:
    """Answers for one zone, and for the names of the key `hosts`, which go before every other server's.

    `serial` is the SOA's, set from outside as time passes, `hosts` the table in force.
    """

    def __init__(self, backend: Backend, policy: Policy) -> None:
        self._backend = backend
        self._policy = policy
        self._zone = backend.domain
        self.serial = 0
        self.hosts = Hosts()
        self._long_chains: set[Labels] = set()

    @property
    def ttl(self) -> int:
        """TTL of the zone's records, in seconds."""
        return self._policy.ttl

    def owns(self, name: Labels) -> bool:
        """Whether a lower-case name is in the cluster domain."""
        return name[-len(self._zone) :] == self._zone

    def has(self, name: Labels) -> bool:
        """Whether a lower-case name is answered here: of the cluster, a reverse name of ours, or of `hosts`."""
        return (
            self.owns(name) or self._backend.reverse_record(name) is not None or name in self.hosts.addresses
        )

    def outside(self, name: Labels, qtype: int) -> Answer | None:
        """Answer a question for a name elsewhere that is not to be forwarded; None for all others.

        A name of `hosts` has no other types than those of its addresses, and an address of its lines
        the name there.  `resolver.arpa` is of no other server's concern (RFC 9462 6.1).
        """
        if name in self.hosts.addresses:
            return self._of_hosts(name, qtype)
        if name[-1:] != _RESOLVER_ARPA[-1:]:
            return None
        if name[-2:] == _RESOLVER_ARPA:
            return self._nodata(name)
        owner = self.hosts.names.get(address_of_reverse(name) or b"")
        if owner is None:
            return None
        if qtype != numbers.PTR:
            return self._nodata(name)
        return Answer(answer=[name_rrset(name, numbers.PTR, self._policy.ttl, (owner,))])

    def _of_hosts(self, name: Labels, qtype: int) -> Answer:
        size = numbers.ADDRESS_OCTETS.get(qtype)
        addresses = tuple(address for address in self.hosts.addresses[name] if len(address) == size)
        if not addresses:
            return self._nodata(name)
        return Answer(
            answer=[RRset(name, qtype, self._policy.ttl, tuple((address,) for address in addresses))]
        )

    def _nodata(self, name: Labels) -> Answer:
        return Answer(authority=[self._soa(name, self._policy.negative_ttl)])

    def resolve(self, name: Labels, qtype: int, limit: int = numbers.LARGEST_MESSAGE) -> Answer | Chain:
        """Answer a question for a name of the zone, in a message of at most `limit` octets.

        Where no message holds all records, there are just more than `limit` does.
        """
        try:
            return self.follow(Chain(qtype, name, limit))
        except TooWideError:
            return Answer(numbers.REFUSED, authoritative=False)

    def follow(self, chain: Chain) -> Answer | Chain:
        """Take a chain further, whose target is answered here."""
        while True:
            if not self.owns(chain.target):
                known = self.reverse(chain.target, chain.qtype) or self.outside(chain.target, chain.qtype)
                return self._complete(chain, known or self.negative(numbers.NXDOMAIN))
            try:
                found = self._at(chain)
            except BackendError as error:
                _log.debug("%s: %s", to_text(chain.target), error)
                return self.unresolved(chain)
            if isinstance(found, Answer):
                return self._complete(chain, found)
            self._step(chain, found)
            if chain.broken():
                return self._broken(chain)
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
        while chain.qtype != numbers.CNAME and not self.has(chain.target):
            if (alias := alias_of(chain.target, records)) is None:
                break
            target = lower(alias.target)
            chain.seen.add(chain.target)
            chain.links.append(self._upstream_rrset(alias.owner, numbers.CNAME, [alias.record]))
            chain.target = target
            if chain.broken():
                return self._broken(chain)
        if self.has(chain.target):
            return chain
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
        if silent and chain.target != asked:
            return chain
        found = Answer(said.rcode if said.rcode in (numbers.NOERROR, numbers.NXDOMAIN) else numbers.SERVFAIL)
        if own:
            found.answer = [self._upstream_rrset(own[0].owner, chain.qtype, own)]
        elif said.soa is not None and found.rcode != numbers.SERVFAIL:
            found.authority = [self._upstream_rrset(said.soa.owner, numbers.SOA, [said.soa])]
        return self._complete(chain, found)

    def revise(self, name: Labels, qtype: int, said: Said, limit: int) -> Answer | Chain | None:
        """Take out of an upstream's reply what is not its to say; None where there is no such thing.

        No record of the cluster domain, of a reverse name of ours or of `hosts` is taken from another
        server.  An alias that leads there comes back as a Chain, to be completed from our own.
        """
        sections = (said.answer, said.authority, said.additional)
        honest = [[r for r in section if not self.has(lower(r.owner))] for section in sections]
        target, seen = name, set[Labels]()
        while qtype != numbers.CNAME and target not in seen and not self.has(target):
            seen.add(target)
            if (alias := alias_of(target, honest[0])) is None:
                break
            target = lower(alias.target)
        if target != name and self.has(target):
            return self.absorb(Chain(qtype, name, limit), Resolution(numbers.NOERROR, tuple(honest[0])))
        if sum(map(len, honest)) == sum(map(len, sections)):
            return None
        answer, authority, additional = (
            [RRset(record.owner, record.rtype, record.ttl, ((record.rdata,),)) for record in section]
            for section in honest
        )
        return Answer(said.rcode, said.authoritative, answer, authority, additional)

    def _broken(self, chain: Chain) -> Answer:
        """Give up an alias that is too long or turns back; said once for each of the first names."""
        first = chain.links[0].owner
        if first not in self._long_chains and len(self._long_chains) < _MOST_COMPLAINTS:
            self._long_chains.add(first)
            _log.warning(
                "%s: its aliases turn back or are more than %d; SERVFAIL",
                to_text(first),
                len(chain.links) - 1,
            )
        return Answer(numbers.SERVFAIL)

    def unresolved(self, chain: Chain) -> Answer:
        """Return SERVFAIL with the aliases that were followed."""
        return self._complete(chain, Answer(numbers.SERVFAIL))

    def negative(self, rcode: int) -> Answer:
        """Return NXDOMAIN, or NODATA for NOERROR, with the zone's SOA (RFC 2308 2)."""
        return Answer(rcode, authority=[self._soa(self._zone, self._policy.negative_ttl)])

    def _complete(self, chain: Chain, found: Answer) -> Answer:
        if not chain.links:
            return found
        turned = [_rotated(rrset) for rrset in found.answer]
        return replace(found, answer=[*chain.links, *turned], keep=False)

    def _step(self, chain: Chain, target: Labels) -> None:
        chain.seen.add(chain.target)
        chain.links.append(name_rrset(chain.target, numbers.CNAME, self._policy.ttl, (target,)))
        chain.target = target
        chain.steps += 1

    def _at(self, chain: Chain) -> Answer | Labels:
        """Return what is at the target of a chain, a name of the zone, or the target of the alias there.

        Only in the name that was asked for is `*` a wildcard.  Of several records that it finds
        the aliases are left out, as one name cannot have two (RFC 2181 10.1).
        """
        name, qtype = chain.target, chain.qtype
        if name == self._zone:
            return self._apex(qtype)
        if qtype == numbers.TXT and name == (b"dns-version", *self._zone):
            return Answer(answer=[txt_rrset(name, self._policy.ttl, DNS_SCHEMA_VERSION)])
        wild = not chain.links and b"*" in name
        found = self._matches(name) if wild else self._backend.records(name)
        if found is None:
            return self.negative(numbers.NXDOMAIN)
        records = [it for it in found if not isinstance(it, Alias)]
        if found and not records:
            target = min(it.target for it in found if isinstance(it, Alias))
            own = name_rrset(name, numbers.CNAME, self._policy.ttl, (target,))
            return Answer(answer=[own]) if qtype == numbers.CNAME else target
        answer = self._typed(name, qtype, records, chain.limit)
        if wild:
            return replace(answer, answer=[_rotated(rrset) for rrset in answer.answer], keep=False)
        return answer

    def _matches(self, name: Labels) -> tuple[Found, ...] | None:
        if not self._policy.wildcards:
            return None
        return self._backend.matches(name, Budget(self._policy.wildcard_names).spend)

    def _typed(self, name: Labels, qtype: int, found: Sequence[Records], limit: int) -> Answer:
        """Return the records of one type; what has none of it costs nothing but the look at the name."""
        answer = Answer(keep=qtype in _KEPT_TYPES)
        if qtype in numbers.ADDRESS_OCTETS:
            octets = numbers.ADDRESS_OCTETS[qtype]
            addresses, whole = _some(
                [_all(it.addresses(octets)) for it in found], _RECORD_OCTETS + octets, limit
            )
            answer.keep &= whole
            if addresses:
                answer.answer = [RRset(name, qtype, self._policy.ttl, addresses)]
        elif qtype == numbers.SRV:
            self._add_srv(answer, name, found, limit)
        if not answer.answer:
            answer.authority = self.negative(numbers.NOERROR).authority
        return answer

    def _add_srv(self, answer: Answer, name: Labels, found: Sequence[Records], limit: int) -> None:
        """Add the SRV records, and the addresses of their targets where all fit.

        Weights share 100 among the records before equal ones merge, as in SkyDNS.  Differs: none is 0,
        which takes a server out.
        """
        count = sum(records.count for records in found)
        if not count:
            return
        weight = max(1, 100 // count)
        least = _RECORD_OCTETS + _SRV_OCTETS + min(len(to_wire(it.parent)) for it in found if it.count)
        targets, whole = _some([_targets_of(it) for it in found if it.count], least, limit)
        rdatas: dict[bytes, None] = {}
        glue: dict[Labels, tuple[Records, bytes]] = {}
        octets = 0
        for records, label, port in targets:
            target = (label, *records.parent) if label else records.parent
            glue[target] = records, label
            data = srv_rdata(weight, port, to_wire(target))
            octets += 2 * _RECORD_OCTETS + len(data) + len(label)
            rdatas[data] = None
        answer.keep &= whole
        answer.answer = [RRset(name, numbers.SRV, self._policy.ttl, list(rdatas))]
        if whole and octets <= numbers.LARGEST_MESSAGE:
            answer.additional = [
                rrset
                for target, (records, label) in glue.items()
                for rrset in self._glue(target, records, label)
            ]

    def _glue(self, owner: Labels, records: Records, label: bytes) -> Iterable[RRset]:
        for rtype, octets in numbers.ADDRESS_OCTETS.items():
            if addresses := records.glue(label, octets):
                yield RRset(owner, rtype, self._policy.ttl, addresses)

    def _apex(self, qtype: int) -> Answer:
        if qtype == numbers.SOA:
            return Answer(answer=[self._soa(self._zone, SOA_TTL)])
        if qtype != numbers.NS:
            return self.negative(numbers.NOERROR)
        server = (b"ns", b"dns", *self._zone)
        return Answer(
            answer=[name_rrset(self._zone, numbers.NS, self._policy.ttl, (server,))],
            additional=[
                RRset(server, rtype, self._policy.ttl, addresses)
                for found in self._backend.records(server) or ()
                for rtype, octets in numbers.ADDRESS_OCTETS.items()
                if not isinstance(found, Alias) and (addresses := found.addresses(octets))
            ],
        )

    def _soa(self, owner: Labels, ttl: int) -> RRset:
        return soa_rrset(owner, self._zone, ttl, self.serial, self._policy.negative_ttl)

    def _upstream_rrset(self, owner: Labels, rtype: int, records: Sequence[UpstreamRecord]) -> RRset:
        ttl = min(self._policy.ttl, *(record.ttl for record in records))
        return RRset(owner, rtype, ttl, tuple(dict.fromkeys((record.rdata,) for record in records)))


_Take = Callable[[int, int], Sequence[_T]]
"""Returns so many items from one on."""


def _all(items: Sequence[bytes]) -> tuple[int, _Take[bytes]]:
    return len(items), lambda start, most: items[start : start + most]


def _targets_of(records: Records) -> tuple[int, _Take[tuple[Records, bytes, int]]]:
    return records.distinct, lambda start, most: [(records, *it) for it in records.targets(start, most)]


def _some(lists: Sequence[tuple[int, _Take[_T]]], octets: int, limit: int) -> tuple[list[_T], bool]:
    """Return distinct items, and whether these are all there are.

    All where a message of any size may hold them, each as a record of at least so many `octets`;
    else, from a random one on, more than one of `limit` octets does: no more are made than are sent.
    """
    if sum(count for count, _ in lists) * octets <= numbers.LARGEST_MESSAGE:
        return list(dict.fromkeys([item for count, take in lists for item in take(0, count)])), True
    found: dict[_T, None] = {}
    most = limit // octets + 1
    first = random.randrange(len(lists))
    for count, take in (*lists[first:], *lists[:first]):
        start = random.randrange(count) if count else 0
        for at, end in ((start, count), (0, start)):
            begin = at
            while begin < end and (wanted := most - len(found)) > 0:
                found.update((item, None) for item in take(begin, min(end - begin, wanted)))
                begin += wanted
    return list(found), False


def _rotated(rrset: RRset) -> RRset:
    """Rotate an RRset that is not kept by a random offset."""
    start = random.randrange(len(rrset.rdatas))
    return rrset._replace(rdatas=(*rrset.rdatas[start:], *rrset.rdatas[:start]))
