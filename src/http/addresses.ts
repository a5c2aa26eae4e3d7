import { BlockList, isIP, isIPv4 } from 'node:net';
import type { BoundAddress } from '../config/listener.ts';

/**
 * Returns true if only this machine can reach a listener on this host. Of names only `localhost` and names below it
 * count, by their definition.
 */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return /(^|\.)localhost\.?$/i.test(host);
  return family === 4 ? host.startsWith('127.') : loopbackIpv6().check(host, 'ipv6');
}

/** The loopback addresses, also those of IPv4 in IPv6. Lists are created at their first use, which most starts lack. */
const loopbackIpv6 = once(() => {
  const addresses = new BlockList();
  addresses.addSubnet('127.0.0.0', 8, 'ipv4');
  addresses.addAddress('::1', 'ipv6');
  return addresses;
});

function once<Value>(create: () => Value): () => Value {
  let value: Value | undefined;
  return () => {
    value ??= create();
    return value;
  };
}

/** Returns true if the host stands for all interfaces of this machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/**
 * IPv4 networks outside of the public Internet: those of the IANA Special-Purpose Address Registry that are not
 * globally reachable, and multicast. [RFC 6890; RFC 5771]
 */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  // Shared by the customers of a provider. [RFC 6598]
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local; includes the metadata services of clouds.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  // Relays of 6to4, which is obsolete. [RFC 7526]
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

/** All of IPv6 except 2000::/3, which the public Internet uses, and the special networks inside it. [RFC 4291 2.4] */
const SPECIAL_IPV6 = [
  // Loopback, unspecified, IPv4 in deprecated forms, local translators, discard-only.
  ['::', 3],
  // Protocol assignments: Teredo, which contains an IPv4 address of each end, benchmarking, ORCHID. [RFC 2928, 4380]
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4, which contains an IPv4 address, and hosts with such an address can be reached by IPv4. [RFC 3056]
  ['2002::', 16],
  ['3fff::', 20],
  // Segment routing, unique local, link-local, site-local, multicast, and unassigned networks.
  ['4000::', 2],
  ['8000::', 1],
] as const;

/**
 * Prefixes whose addresses end with the IPv4 address that is actually connected to. [RFC 4291 2.5.5.2, RFC 6052 2.1]
 */
const IPV4_IN_IPV6 = ['::ffff:', '64:ff9b::'] as const;

const special = once(() => {
  const [ipv4, ipv6, ipv4InIpv6] = [new BlockList(), new BlockList(), new BlockList()];
  for (const [network, prefix] of SPECIAL_IPV4) {
    ipv4.addSubnet(network, prefix, 'ipv4');
    for (const lead of IPV4_IN_IPV6) ipv4.addSubnet(`${lead}${network}`, 96 + prefix, 'ipv6');
  }
  for (const [network, prefix] of SPECIAL_IPV6) ipv6.addSubnet(network, prefix, 'ipv6');
  for (const lead of IPV4_IN_IPV6) ipv4InIpv6.addSubnet(`${lead}0.0.0.0`, 96, 'ipv6');
  return { ipv4, ipv6, ipv4InIpv6 };
});

/**
 * Returns true for an address outside of the public Internet: this machine, its networks, multicast, reserved or
 * unassigned.
 */
export function isSpecialAddress(address: string): boolean {
  // A link-local address may have the name of an interface appended.
  const bare = address.split('%', 1)[0] ?? '';
  const family = isIP(bare);
  if (family === 0) return false;
  const { ipv4, ipv6, ipv4InIpv6 } = special();
  if (family === 4) return ipv4.check(bare, 'ipv4');
  return (ipv4InIpv6.check(bare, 'ipv6') ? ipv4 : ipv6).check(bare, 'ipv6');
}

/** The host of a URL, without the brackets around IPv6 addresses. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

/** An established connection: both ends of a TCP connection, or the path of a socket. */
export type Reached =
  | { readonly kind: 'tcp'; readonly local: string; readonly remote: string; readonly port: number }
  | { readonly kind: 'socket'; readonly path: string };

/** Returns true if an outgoing connection leads to one of the addresses on which this process listens. */
export function leadsBack(reached: Reached, bound: readonly BoundAddress[]): boolean {
  return bound.some((address) => {
    if (reached.kind === 'socket') return address.kind === 'socket' && address.path === reached.path;
    return address.kind === 'tcp' && address.port === reached.port && isReachedAt(reached, address.host);
  });
}

/** The system connects to an address of this machine from the same address, or from a loopback address. */
function isReachedAt({ local, remote }: Extract<Reached, { readonly kind: 'tcp' }>, host: string): boolean {
  const address = withoutPrefix(remote);
  const isOfThisMachine = isLoopback(address) || withoutPrefix(local) === address;
  if (isWildcard(host)) return isOfThisMachine && (host === '::' || isIPv4(address));
  if (isIP(host) !== 0) return host === address;
  return isLoopback(host) ? isLoopback(address) : isOfThisMachine;
}

/** Removes the prefix that an IPv6 socket adds to an IPv4 address. [RFC 4291 2.5.5.2] */
function withoutPrefix(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '');
}
