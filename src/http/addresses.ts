import { BlockList, isIP } from 'node:net';

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

const nearby = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Link-local; the metadata services of clouds are here.
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
] as const) {
  nearby.addSubnet(network, prefix, 'ipv4');
  // [RFC 6052] The same by way of a translator, where the network has only IPv6.
  nearby.addSubnet(`64:ff9b::${network}`, 96 + prefix, 'ipv6');
}
for (const [network, prefix] of [
  ['::', 127],
  // [RFC 8215] Translators of a network's own.
  ['64:ff9b:1::', 48],
  ['fc00::', 7],
  ['fe80::', 10],
] as const) {
  nearby.addSubnet(network, prefix, 'ipv6');
}

/** Does the address lead to this machine or its neighbours, where strangers must not send us? */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  return nearby.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/** Of a URL, where addresses of IPv6 stand in brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}
