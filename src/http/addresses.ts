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
