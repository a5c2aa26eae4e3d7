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

/** This is longer than a login may take, so the cookie of one that nobody has finished expires by itself. */
const COOKIE_LIFETIME_S = 300;

/** The other names of this machine, which a browser uses that reaches the listener by a forwarded port. */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** What a browser is told when it comes back. */
export type CallbackVerdict = Extract<LoginPage, 'done' | 'refused' | 'failed' | 'ignored'>;

/** What a listener waits for. */
export interface AwaitedLogin {
  /** How the server is called on the pages. Only the browser that began is shown it. */
  readonly server: string;
  /** Where the user logs in: the browser that begins is redirected there. */
  readonly page: URL;
  /** The browser that began has come back with these. */
  receive(parameters: URLSearchParams): CallbackVerdict;
  /** A second browser has opened the start address, so nobody can tell which one is the user's. */
  contested(): void;
}

/**
 * - `idle`: no login has been offered.
 * - `offered`: whoever opens the start address first begins.
 * - `begun`: one browser has, and is known by its cookie.
 */
type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'offered'; readonly login: AwaitedLogin; readonly start: URL }
  | { readonly kind: 'begun'; readonly login: AwaitedLogin; readonly start: URL; readonly secret: string };

/**
 * Where a login begins and ends in the browser: two paths on this machine, for as long as one login takes. The browser is
 * opened with the start address only. Nobody can guess that; it sets a cookie and redirects to the page to log in at.
 * Nobody can end the login without the cookie, and no second browser can begin it.
 */
export class CallbackListener {
  /** One for each address that the name of the callback may lead to, in the order of `addressesOf`. */
  readonly #servers: readonly AddressServer[];
  /** With the port that was chosen, once it listens. */
  #callback: URL;
  #state: State = { kind: 'idle' };

  /** @param callback http on this machine; port 0 picks a free one */
  constructor(callback: URL) {
    this.#callback = callback;
    this.#servers = addressesOf(callback).map((address) => {
      const server = createServer({ maxHeaderSize: 16 * 1024, requestTimeout: 10_000 });
      server.on('request', (request, response) => this.#answer(request, response));
      return { address, server };
    });
  }

  /** Resolves with where it listens. Rejects with ERR_CONFIG_LISTEN. */
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

  /** Listens at all addresses, or at none. */
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

  /** Called once, after `listen`. Returns the start address, which only the user may learn. */
  offer(login: AwaitedLogin): URL {
    // Below the path of the callback, so that the cookie is sent to both and to nothing else.
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
    // A page on another site whose name was made to resolve to this machine sends another Host.
    const isOurs = host === this.#callback.hostname;
    const isKnown = isStart
      ? isOurs || LOOPBACK_NAMES.has(host)
      : target?.pathname === this.#callback.pathname && isOurs;
    if (!isKnown) return void response.writeHead(404, PAGE_HEADERS).end();
    if (method !== 'GET') return void response.writeHead(405, { ...PAGE_HEADERS, allow: 'GET' }).end();
    if (!isStart) return this.#end(request, target?.searchParams ?? new URLSearchParams(), response);
    // The cookie has to be one for the name that the callback has.
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
    // A browser may open a page again that its user has closed.
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

  /** Browsers do not tell ports apart, and several logins may take place at once. */
  get #cookieName(): string {
    return `mcp-portage-login-${this.#callback.port || '80'}`;
  }

  /** Stops listening. May be called twice. A response that is being sent is completed. */
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
  /** The address at which the system refuses to listen; undefined: there is none. */
  readonly taken: { readonly address: string; readonly cause: NodeJS.ErrnoException } | undefined;
}

const IPV4 = '127.0.0.1';
const IPV6 = '::1';
/** The errors of a machine without IPv6. */
const NO_IPV6: ReadonlySet<string | undefined> = new Set([
  'EADDRNOTAVAIL',
  'EAFNOSUPPORT',
  'EINVAL',
  'EPROTONOSUPPORT',
]);
/** Ports that the system picks are rarely taken at the other address. */
const MAX_PORT_TRIES = 5;

/**
 * Browsers differ in which address they try first for `localhost`. At an address where nobody listens here, another
 * program could take the end of the login.
 */
function addressesOf(callback: URL): readonly string[] {
  const host = hostOf(callback);
  if (host === 'localhost') return [IPV4, IPV6];
  return [host === IPV6 ? IPV6 : IPV4];
}

/** Resolves with the error if the system refuses. */
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

/** Compares in a time that reveals nothing of the expected text but its length. */
function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
