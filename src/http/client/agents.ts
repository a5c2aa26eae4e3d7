import { type ClientRequest, Agent as HttpAgent, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { BlockList, isIP, type Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { BridgeError } from '../../errors.ts';
import { readSecureContext, type TlsFiles } from './secure-context.ts';
import { SocketAgent } from './socket-agent.ts';

/**
 * An idle connection is closed after this time. Common servers close theirs after 5 s, and if a request is sent on a
 * connection that is closing, it is unknown whether the server received it.
 */
const IDLE_SOCKET_MS = 4000;
/** The number of idle connections kept for each server. */
const MAX_IDLE_SOCKETS = 64;
/**
 * TCP checks this often whether the peer of a waiting connection has vanished (sleeping laptop, pulled cable). Idle
 * connections keep the same interval, although Node would use a second: changing it twice per request costs a seventh
 * of the time of a small one.
 */
export const TCP_KEEP_ALIVE_MS = 30_000;

/** The target of a request, as options of `http.request`. */
export interface RequestTarget extends Pick<RequestOptions, 'protocol' | 'hostname' | 'port' | 'path' | 'agent'> {
  /** The value of the `Host` header. */
  readonly host: string;
  /**
   * `looked-up` if the agent has to read the headers one by one before it passes the request on; `written` if they can
   * be a list.
   */
  readonly head: 'written' | 'looked-up';
}

export interface AgentsOptions {
  readonly tls: TlsFiles;
  readonly proxyEnv: ProxyEnvironment;
  /** The Unix socket or named pipe for all requests, whatever host their URL has; undefined to use the network. */
  readonly socketPath: string | undefined;
}

/** Keep-alive connections to one server, through the proxy that the environment names for it. */
export class Agents {
  readonly #socketPath: string | undefined;
  readonly #secureContext: SecureContext | undefined;
  readonly #proxyEnvironment: ProxyEnvironment;
  /** Keyed by scheme and URL of the proxy. The key of a tunnel has `tunnel` in place of the scheme. */
  readonly #agents = new Map<string, HttpAgent>();
  /** The target of the latest request, because most requests have the same URL as the one before. */
  #latest: { readonly url: URL; readonly target: RequestTarget } | undefined;

  /** Throws BridgeError ERR_CONFIG_OPTION when a file cannot be used. */
  constructor({ tls, proxyEnv, socketPath }: AgentsOptions) {
    this.#secureContext = readSecureContext(tls);
    this.#proxyEnvironment = proxyEnv;
    this.#socketPath = socketPath;
  }

  /** Throws BridgeError ERR_CONFIG_OPTION when the environment names an unusable proxy. */
  targetOf(url: URL): RequestTarget {
    if (this.#latest?.url !== url) {
      const { protocol, hostname, port, path } = urlToHttpOptions(url);
      const agent = this.agentFor(url);
      const head = agent instanceof HttpProxyAgent ? 'looked-up' : 'written';
      this.#latest = { url, target: { protocol, hostname, port, path, agent, host: url.host, head } };
    }
    return this.#latest.target;
  }

  /** Throws BridgeError ERR_CONFIG_OPTION when the environment names an unusable proxy. */
  agentFor(url: URL): HttpAgent {
    const proxy = this.proxyFor(url);
    const key = `${url.protocol} ${proxy?.href ?? ''}`;
    let agent = this.#agents.get(key);
    if (agent === undefined) {
      agent = this.#createAgent(url, proxy);
      this.#agents.set(key, agent);
    }
    return agent;
  }

  /**
   * Returns the agent for a connection that switches to another protocol. Proxies allow that only through a tunnel.
   * [RFC 6455 4.1] Throws the same error as `agentFor`.
   */
  tunnelFor(url: URL): HttpAgent {
    const proxy = this.proxyFor(url);
    if (proxy === undefined || url.protocol === 'https:') return this.agentFor(url);
    const key = `tunnel ${proxy.href}`;
    const agent = this.#agents.get(key) ?? new TunnelAgent(proxy, undefined);
    this.#agents.set(key, agent);
    return agent;
  }

  /** Throws BridgeError ERR_CONFIG_OPTION when the environment names an unusable proxy. */
  proxyFor(url: URL): URL | undefined {
    return this.#socketPath === undefined ? findProxy(url, this.#proxyEnvironment) : undefined;
  }

  #createAgent(url: URL, proxy: URL | undefined): HttpAgent {
    if (this.#socketPath !== undefined) return new SocketAgent(this.#socketPath, POOL);
    const isSecure = url.protocol === 'https:';
    if (proxy !== undefined) {
      return isSecure
        ? new TunnelAgent(proxy, this.#secureContext)
        : new HttpProxyAgent(proxy, { ...VERIFIED, ...POOL });
    }
    // A ready-made context keeps the certificates out of the key by which Node finds a pooled connection.
    return isSecure ? new HttpsAgent({ ...POOL, ...secured(this.#secureContext) }) : new HttpAgent(POOL);
  }

  /** Closes the idle connections to this server. */
  closeIdle(url: URL): void {
    for (const sockets of Object.values(this.agentFor(url).freeSockets)) {
      for (const socket of [...(sockets ?? [])]) socket.destroy();
    }
  }

  /** Closes every connection. */
  destroy(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
    this.#latest = undefined;
  }
}

/**
 * Set explicitly although it is the default, because NODE_TLS_REJECT_UNAUTHORIZED, perhaps from a shell profile,
 * changes the default.
 */
const VERIFIED = { rejectUnauthorized: true } as const;

/** Node iterates over these options for each request, so there are only a few. */
const POOL = {
  keepAlive: true,
  keepAliveMsecs: TCP_KEEP_ALIVE_MS,
  timeout: IDLE_SOCKET_MS,
  maxFreeSockets: MAX_IDLE_SOCKETS,
  scheduling: 'lifo',
} as const;

type ConnectOptions = Parameters<HttpsProxyAgent<string>['connect']>[1];

/** Tunnels connections through a proxy. Over https, the proxy sees only the server's name. */
class TunnelAgent extends HttpsProxyAgent<string> {
  readonly #secureContext: SecureContext | undefined;

  constructor(proxy: URL, secureContext: SecureContext | undefined) {
    super(proxy, { ...VERIFIED, ...POOL });
    this.#secureContext = secureContext;
  }

  /**
   * Aborts the unfinished tunnel together with its request, because no other code would close it. Node emits no event
   * at the end of a request that has no socket yet, so the request's `destroy` is replaced while the tunnel is set up.
   */
  override async connect(request: ClientRequest, options: ConnectOptions): Promise<Socket> {
    const attempt = new AbortController();
    const destroy = request.destroy;
    request.destroy = (error) => {
      attempt.abort();
      return destroy.call(request, error);
    };
    const shared = this.connectOpts;
    this.connectOpts = Object.assign({}, shared, { signal: attempt.signal });
    try {
      const connecting = super.connect(request, Object.assign({}, options, secured(this.#secureContext)));
      this.connectOpts = shared;
      return await connecting;
    } finally {
      request.destroy = destroy;
    }
  }
}

function secured(secureContext: SecureContext | undefined): {
  secureContext?: SecureContext;
  rejectUnauthorized: true;
} {
  return secureContext === undefined ? VERIFIED : { ...VERIFIED, secureContext };
}

/** The values of HTTP_PROXY and similar environment variables, by their names. */
export type ProxyEnvironment = Readonly<Record<string, string>>;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * Returns the proxy that the environment names for a URL; undefined if there is none. Lower-case names take precedence
 * over upper-case ones, as in other programs. Loopback addresses never go through a proxy, because the proxy would
 * resolve "localhost" to its own machine.
 * @throws BridgeError ERR_CONFIG_OPTION when the value is no proxy URL
 */
export function findProxy(url: URL, environment: ProxyEnvironment): URL | undefined {
  const scheme = url.protocol.slice(0, -1);
  const value = lookUp(environment, `${scheme}_proxy`) ?? lookUp(environment, 'all_proxy');
  if (value === undefined || isLoopback(url) || isExempt(url, lookUp(environment, 'no_proxy') ?? '')) return undefined;
  const text = value.includes('://') ? value : `http://${value}`;
  const proxy = URL.canParse(text) ? new URL(text) : undefined;
  if (proxy === undefined || !/^https?:$/.test(proxy.protocol) || proxy.hostname === '') {
    // The value is not shown, because it may contain a password.
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
 * True if NO_PROXY exempts the URL. It lists names, which include their subdomains, with or without a leading `.` or
 * `*.`; addresses; ranges such as 10.0.0.0/8; or `*` for all hosts. Names and addresses may have a port.
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
