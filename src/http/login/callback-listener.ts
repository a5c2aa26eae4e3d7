import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { generateRandomState } from 'oauth4webapi';
import { BridgeError } from '../../errors.ts';
import { hostOf } from '../addresses.ts';
import { type LoginPage, renderLoginPage } from './login-page.ts';

const EVERY_ANSWER = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', connection: 'close' };
const PAGE_HEADERS = {
  ...EVERY_ANSWER,
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};

/** The cookie lasts longer than a login may take, so that the cookie of an unfinished login expires by itself. */
const COOKIE_LIFETIME_S = 300;

/** Other names of this machine, which a browser may use if it reaches the listener through a forwarded port. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The page that a browser shows when it returns. */
export type CallbackVerdict = Extract<LoginPage, 'done' | 'refused' | 'failed' | 'ignored'>;

/** The login that a listener serves. */
export interface AwaitedLogin {
  /** The name of the server on the pages. Only the browser that began the login sees it. */
  readonly server: string;
  /** The login page, to which the browser that begins is redirected. */
  readonly page: URL;
  /** Called when the browser that began the login returns with these parameters. */
  receive(parameters: URLSearchParams): CallbackVerdict;
  /** Called when a second browser has opened the start address, so that it is unknown which one is the user's. */
  contested(): void;
}

/**
 * - `idle`: no login has been offered.
 * - `offered`: the first browser that opens the start address begins the login.
 * - `begun`: a browser has begun the login, and is identified by its cookie.
 */
type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'offered'; readonly login: AwaitedLogin; readonly start: URL }
  | { readonly kind: 'begun'; readonly login: AwaitedLogin; readonly start: URL; readonly secret: string };

/**
 * Serves the beginning and the end of one login in the browser, at two paths on this machine. The user's browser is
 * opened only with the start address, which is unguessable; its response sets a cookie and redirects to the login page.
 * Without the cookie a browser cannot end the login, and a second browser cannot begin it.
 */
export class CallbackListener {
  /** Servers for the addresses that the host name of the callback may resolve to, in the order of `addressesOf`. */
  readonly #servers: readonly AddressServer[];
  /** The callback URL. Its port is the one in use once the listener listens. */
  #callback: URL;
  #state: State = { kind: 'idle' };

  /** @param callback an http URL on this machine; port 0 picks a free port */
  constructor(callback: URL) {
    this.#callback = callback;
    this.#servers = addressesOf(callback).map((address) => {
      const server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 });
      server.on('request', (request, response) => this.#answer(request, response));
      return { address, server };
    });
  }

  /** Resolves with the URL at which it listens. Rejects with ERR_CONFIG_LISTEN. */
  async listen(): Promise<URL> {
    const configured = Number(this.#callback.port || '80');
    for (let tries = 1; ; tries += 1) {
      const { port, taken } = await this.#listenAt(configured);
      if (taken === undefined) {
        const listening = new URL(this.#callback);
        listening.port = String(port);
        this.#callback = listening;
        return listening;
      }
      // A port that is free at one address may be taken at the other.
      if (configured === 0 && tries < MAX_PORT_TRIES) continue;
      const { address, cause } = taken;
      const problem = `Cannot listen at ${address.includes(':') ? `[${address}]` : address}:${port} for the end of a login (${cause.code})`;
      const message = `${problem}. Choose another port with --oauth-callback, or 0 for any.`;
      throw new BridgeError('ERR_CONFIG_LISTEN', message, { cause });
    }
  }

  /** Listens at all addresses, or at none. On a machine without IPv6, the IPv4 address alone is enough. */
  async #listenAt(configured: number): Promise<ListenOutcome> {
    let port = configured;
    for (const { address, server } of this.#servers) {
      const cause = await startListening(server, port, address);
      if (cause === undefined) port = (server.address() as AddressInfo).port;
      else if (address !== IPV6 || this.#servers.length === 1 || !NO_IPV6.has(cause.code)) {
        await Promise.all(this.#servers.map(({ server: other }) => stopListening(other)));
        return { port, taken: { address, cause } };
      }
    }
    return { port, taken: undefined };
  }

  /** Called once, after `listen`. Returns the start address, which only the user may see. */
  offer(login: AwaitedLogin): URL {
    // The start path is below the callback's path, so that the cookie is sent to these two paths only.
    const start = new URL(this.#callback);
    start.pathname = `${start.pathname.replace(/\/$/, '')}/start/${generateRandomState()}`;
    this.#state = { kind: 'offered', login, start };
    return start;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method, url = '', headers } = request;
    const target = URL.canParse(url, 'http://callback') ? new URL(url, 'http://callback') : undefined;
    const state = this.#state;
    const isStart = state.kind !== 'idle' && target !== undefined && isEqual(target.pathname, state.start.pathname);
    const host = headers.host?.replace(/:\d+$/, '').toLowerCase() ?? '';
    // A page on another site whose name resolves to this machine (DNS rebinding) sends another Host.
    const isOurs = host === this.#callback.hostname;
    const isKnown = isStart
      ? isOurs || LOOPBACK_NAMES.has(host)
      : target?.pathname === this.#callback.pathname && isOurs;
    if (!isKnown) return void response.writeHead(404, PAGE_HEADERS).end();
    if (method !== 'GET') return void response.writeHead(405, { ...PAGE_HEADERS, allow: 'GET' }).end();
    if (!isStart) return this.#end(request, target?.searchParams ?? new URLSearchParams(), response);
    // The cookie has to be set for the host name of the callback.
    if (isOurs) this.#begin(request, response);
    else redirect(response, state.start);
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    const state = this.#state;
    if (state.kind === 'idle') return show(response, 'ignored');
    if (state.kind === 'offered') {
      const secret = generateRandomState();
      this.#state = { ...state, kind: 'begun', secret };
      return redirect(response, state.login.page, this.#cookie(secret, COOKIE_LIFETIME_S));
    }
    // A browser may open the start address again after its user has closed the page.
    if (this.#hasBegun(request)) return redirect(response, state.login.page);
    show(response, 'contested');
    state.login.contested();
  }

  #end(request: IncomingMessage, parameters: URLSearchParams, response: ServerResponse): void {
    const state = this.#state;
    if (state.kind === 'idle') return show(response, 'ignored');
    if (!this.#hasBegun(request)) return show(response, 'unknown-browser');
    const verdict = state.login.receive(parameters);
    const isOver = verdict !== 'ignored';
    show(response, verdict, { server: state.login.server, ...(isOver && { cookie: this.#cookie('', 0) }) });
  }

  #hasBegun({ headers }: IncomingMessage): boolean {
    const state = this.#state;
    if (state.kind !== 'begun') return false;
    const expected = `${this.#cookieName}=${state.secret}`;
    return (headers.cookie ?? '').split(';').some((pair) => isEqual(pair.trim(), expected));
  }

  #cookie(value: string, lifetimeS: number): string {
    const { pathname } = this.#callback;
    return `${this.#cookieName}=${value}; Path=${pathname}; Max-Age=${lifetimeS}; HttpOnly; SameSite=Lax`;
  }

  /**
   * The name contains the port, because browsers share cookies between ports, and several logins may take place at
   * once.
   */
  get #cookieName(): string {
    return `mcp-portage-login-${this.#callback.port || '80'}`;
  }

  /** Stops listening. May be called more than once. A response being sent is completed. */
  close(): void {
    this.#state = { kind: 'idle' };
    for (const { server } of this.#servers) {
      server.close();
      server.closeIdleConnections();
    }
  }
}

interface AddressServer {
  readonly address: string;
  readonly server: Server;
}

interface ListenOutcome {
  readonly port: number;
  /** The address at which listening failed; undefined if it succeeded. */
  readonly taken: { readonly address: string; readonly cause: NodeJS.ErrnoException } | undefined;
}

const IPV4 = '127.0.0.1';
const IPV6 = '::1';
/** Error codes of listening on a machine without IPv6. */
const NO_IPV6: ReadonlySet<string | undefined> = new Set([
  'EADDRNOTAVAIL',
  'EAFNOSUPPORT',
  'EINVAL',
  'EPROTONOSUPPORT',
]);
/** A port that the system picks is rarely taken at the other address, so a few attempts are enough. */
const MAX_PORT_TRIES = 5;

/**
 * Returns the addresses to listen at. Browsers differ in which address they try first for `localhost`, and at an
 * address without a listener another program could receive the response that ends the login.
 */
function addressesOf(callback: URL): readonly string[] {
  const host = hostOf(callback);
  if (host === 'localhost') return [IPV4, IPV6];
  return [host === IPV6 ? IPV6 : IPV4];
}

/** Resolves with the error if listening fails. */
function startListening(server: Server, port: number, address: string): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once('error', resolve);
    server.listen({ port, host: address }, () => resolve(undefined));
  });
}

function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function redirect(response: ServerResponse, location: URL, cookie?: string): void {
  const headers = { ...EVERY_ANSWER, location: location.href, ...(cookie !== undefined && { 'set-cookie': cookie }) };
  response.writeHead(302, headers).end();
}

interface Shown {
  readonly server?: string;
  readonly cookie?: string;
}

function show(response: ServerResponse, page: LoginPage, { server, cookie }: Shown = {}): void {
  const { status, html } = renderLoginPage(page, server);
  response.writeHead(status, { ...PAGE_HEADERS, ...(cookie !== undefined && { 'set-cookie': cookie }) }).end(html);
}

/** Compares two texts in a time that reveals only the length of the expected one. */
function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
