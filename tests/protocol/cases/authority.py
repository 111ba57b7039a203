"""An authoritative name server for one zone, and nothing else: the upstream of the cases.

Positive answers carry the zone's NS and the addresses of every name they mention; negative ones
the SOA; names outside the zone are refused; what does not fit is sent empty with TC.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.zone

from kubedns.shared.servers import ServerAddress
from tests.ports import port_for_both

_PLAIN_UDP = 512


class Authority:
    """Serves a zone file on a free port of 127.0.0.1, over UDP and TCP; `asked` counts queries."""

    def __init__(self, zone_file: Path) -> None:
        self._zone = dns.zone.from_file(str(zone_file), relativize=False)
        self._origin = self._zone.origin or dns.name.root
        self.asked = 0

    async def start(self) -> ServerAddress:
        loop = asyncio.get_running_loop()
        stream, datagrams = port_for_both()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=datagrams)
        self._listener = await asyncio.start_server(self._stream, sock=stream)
        return ServerAddress(*stream.getsockname())

    async def stop(self) -> None:
        self._transport.close()
        self._listener.close()
        await self._listener.wait_closed()

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                query = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                reply = self.reply(query, tcp=True)
                writer.write(len(reply).to_bytes(2) + reply)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def reply(self, wire: bytes, *, tcp: bool) -> bytes:
        self.asked += 1
        query = dns.message.from_wire(wire)
        reply = dns.message.make_response(query)
        self._fill(reply, query.question[0].name, query.question[0].rdtype)
        limit = 65535 if tcp else max(_PLAIN_UDP, query.payload if query.edns >= 0 else 0)
        try:
            return reply.to_wire(max_size=limit)
        except dns.exception.TooBig:
            cut = dns.message.make_response(query)
            cut.flags |= dns.flags.AA | dns.flags.TC
            return cut.to_wire()

    def _fill(self, reply: dns.message.Message, name: dns.name.Name, rdtype: dns.rdatatype.RdataType) -> None:
        if not name.is_subdomain(self._origin):
            reply.set_rcode(dns.rcode.REFUSED)
            return
        reply.flags |= dns.flags.AA
        while (alias := self._zone.get_rrset(name, dns.rdatatype.CNAME)) and rdtype != dns.rdatatype.CNAME:
            reply.answer.append(alias)
            name = alias[0].target
        if (found := self._zone.get_rrset(name, rdtype)) is not None:
            reply.answer.append(found)
            servers = self._zone.get_rrset(self._origin, dns.rdatatype.NS)
            if servers is not None and servers not in reply.answer:
                reply.authority.append(servers)
            reply.additional.extend(self._glue([*reply.answer, *reply.authority]))
            return
        if self._zone.get_node(name) is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        soa = self._zone.get_rrset(self._origin, dns.rdatatype.SOA)
        if soa is not None:
            reply.authority.append(soa)

    def _glue(self, rrsets: list[dns.rrset.RRset]) -> Iterator[dns.rrset.RRset]:
        for rrset in rrsets:
            for rdata in rrset:
                name = {dns.rdatatype.NS: "target", dns.rdatatype.MX: "exchange"}.get(rrset.rdtype)
                for rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA) if name else ():
                    found = self._zone.get_rrset(getattr(rdata, name or ""), rdtype)
                    if found is not None:
                        yield found


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._transport.sendto(self._authority.reply(data, tcp=False), addr)
