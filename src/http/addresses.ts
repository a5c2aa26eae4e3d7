import { BlockList, isIP, isIPv4 } from 'node:net';
import type { BoundAddress } from '../config/listener.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Can only this machine reach what listens on the host? A name counts only when it is `localhost` by definition. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return /(^|\.)localhost\.?$/i.test(host);
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Does the host stand for every interface of this machine? */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/**
 * Networks of IPv4 that the Internet does not lead to: of the IANA Special-Purpose Address Registry what is not globally
 * reachable, and the class that is for groups. [RFC 6890; RFC 5771]
 */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  // Shared by the customers of a provider. [RFC 6598]
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local; the metadata services of clouds are here.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  // Relays of 6to4, which are no more. [RFC 7526]
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  // Multicast.
  ['224.0.0.0', 4],
  // Reserved, and the broadcast address.
  ['240.0.0.0', 4],
] as const;

/** All of IPv6 but 2000::/3, which is what the Internet uses, and the special networks within that. [RFC 4291 2.4] */
const SPECIAL_IPV6 = [
  // Loopback, unspecified, IPv4 in deprecated forms, translators of a network's own, discard-only.
  ['::', 3],
  // This block serves protocols: Teredo, which hides an IPv4 address of each end, benchmarks, ORCHID. [RFC 2928, 4380]
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4, which holds an IPv4 address. Whoever has one of these can be reached at that. [RFC 3056]
  ['2002::', 16],
  ['3fff::', 20],
  // Segment routing, unique local, link-local, site-local, multicast, and what nobody has got yet.
  ['4000::', 2],
  ['8000::', 1],
] as const;

/** Where the last 32 bits are an address of IPv4, which is what is connected to. [RFC 4291 2.5.5.2, RFC 6052 2.1] */
const IPV4_IN_IPV6 = ['::ffff:', '64:ff9b::'] as const;

const specialIpv4 = new BlockList();
const specialIpv6 = new BlockList();
const ipv4InIpv6 = new BlockList();
for (const [network, prefix] of SPECIAL_IPV4) {
  specialIpv4.addSubnet(network, prefix, 'ipv4');
  for (const lead of IPV4_IN_IPV6) specialIpv4.addSubnet(`${lead}${network}`, 96 + prefix, 'ipv6');
}
for (const [network, prefix] of SPECIAL_IPV6) specialIpv6.addSubnet(network, prefix, 'ipv6');
for (const lead of IPV4_IN_IPV6) ipv4InIpv6.addSubnet(`${lead}0.0.0.0`, 96, 'ipv6');

/** Is it an address that the Internet does not lead to: of this machine, its neighbours, a group, or nobody? */
export function isSpecialAddress(address: string): boolean {
  // The system may say by which interface it reaches a link-local address.
  const bare = address.split('%', 1)[0] ?? '';
  const family = isIP(bare);
  if (family === 0) return false;
  if (family === 4) return specialIpv4.check(bare, 'ipv4');
  return (ipv4InIpv6.check(bare, 'ipv6') ? specialIpv4 : specialIpv6).check(bare, 'ipv6');
}

/** The host of a URL without the brackets that IPv6 addresses have there. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** A connection that has been made: the two ends of TCP, or the path of a socket. */
export type Reached =
  | { readonly kind: 'tcp'; readonly local: string; readonly remote: string; readonly port: number }
  | { readonly kind: 'socket'; readonly path: string };

/** Does a connection that was made here lead to one of the addresses where this process listens? */
export function leadsBack(reached: Reached, bound: readonly BoundAddress[]): boolean {
  return bound.some((address) => {
    if (reached.kind === 'socket') return address.kind === 'socket' && address.path === reached.path;
    return address.kind === 'tcp' && address.port === reached.port && isReachedAt(reached, address.host);
  });
}

/** The system connects to an address of this machine from the same address, or from that of the loopback. */
function isReachedAt({ local, remote }: Extract<Reached, { readonly kind: 'tcp' }>, host: string): boolean {
  const address = withoutPrefix(remote);
  const isOfThisMachine = isLoopback(address) || withoutPrefix(local) === address;
  if (isWildcard(host)) return isOfThisMachine && (host === '::' || isIPv4(address));
  if (isIP(host) !== 0) return host === address;
  return isLoopback(host) ? isLoopback(address) : isOfThisMachine;
}

/** A socket of IPv6 puts this in front of an address of IPv4. [RFC 4291 2.5.5.2] */
function withoutPrefix(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
