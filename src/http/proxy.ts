import { BlockList, isIP } from 'node:net';
import { BridgeError } from '../errors.ts';

/** HTTP_PROXY and the like, by name, as the environment had them. */
export type ProxyEnvironment = Readonly<Record<string, string>>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * The proxy that the environment names for a URL; undefined: none. Lower case wins over upper case, as everywhere.
 * This machine is never asked for through a proxy: to the proxy "localhost" would be the proxy's machine.
 * @throws BridgeError ERR_CONFIG_OPTION when the value is no proxy URL
 */
export function findProxy(url: URL, environment: ProxyEnvironment): URL | undefined {
  const scheme = url.protocol.slice(0, -1);
  const value = lookUp(environment, `${scheme}_proxy`) ?? lookUp(environment, 'all_proxy');
  if (value === undefined || isLoopback(url) || isExempt(url, lookUp(environment, 'no_proxy') ?? '')) return undefined;
  const text = value.includes('://') ? value : `http://${value}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  if (proxy === undefined || !/^https?:$/.test(proxy.protocol) || proxy.hostname === '') {
    // The value may hold a password.
    throw new BridgeError(
      'ERR_CONFIG_OPTION',
      `The environment names a proxy for ${scheme} that cannot be used; expected http://host:port or https://host:port.`,
    );
  }
  return proxy;
}

function lookUp(environment: ProxyEnvironment, name: string): string | undefined {
  const value = environment[name] ?? environment[name.toUpperCase()];
  return value === undefined || value.trim() === '' ? undefined : value.trim();
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]' || /^127\./.test(hostname);
}

/**
 * NO_PROXY: names and their subdomains, with or without a leading `.` or `*.`; addresses; ranges such as 10.0.0.0/8;
 * each with an optional port; `*` for all.
 */
function isExempt(url: URL, noProxy: string): boolean {
  const port = url.port || DEFAULT_PORTS[url.protocol];
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true;
      if (entry.includes('/')) return isInRange(host, entry);
      const [, name, entryPort] = /^(.*?)(?::(\d+))?$/.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? [];
      if (name === undefined || (entryPort !== undefined && entryPort !== port)) return false;
      const bare = name.replace(/^\[|\]$/g, '').replace(/^\*?\./, '');
      return host === bare || host.endsWith(`.${bare}`);
    });
}

function isInRange(host: string, range: string): boolean {
  const [address = '', bits = ''] = range.split('/');
  const family = isIP(address);
  if (family === 0 || family !== isIP(host) || !/^\d{1,3}$/.test(bits)) return false;
  const type = family === 6 ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  try {
    list.addSubnet(address, Number(bits), type);
  } catch {
    return false;
  }
  return list.check(host, type);
}
