/** An authorization server that exchanges tokens of callers, and servers that take the exchanged ones. All for one test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';
import { importJWK, type JWTPayload, jwtVerify } from 'jose';
import { createIssuerKey, type IssuerKey, inSeconds } from './fake-issuer.ts';
import { type Answer, forwardTo } from './login-world.ts';

/** The audience of callers' tokens. */
export const TOOLS = 'tools';
const SECRET = 'the-secret-of-the-bridge';
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** A request for an exchange. */
export interface AskedExchange {
  readonly parameters: URLSearchParams;
  readonly authorization: string | undefined;
  /** Of the token that was to be exchanged. */
  readonly caller: JWTPayload;
}

/** A request that a protected server has taken, or refused. */
export interface Seen {
  readonly method: string;
  readonly subject: unknown;
  readonly client: unknown;
  readonly session: unknown;
  readonly token: string;
  readonly status: 'taken' | 'refused';
}

/** What the authorization server does can be changed at any time. */
export class ExchangeWorld {
  readonly key: IssuerKey;
  issuer = '';
  /** Has the key, so that no bridge has to fetch it on a machine that is busy. */
  keyFile = '';
  /** When callers got their tokens, in seconds since 1970. */
  readonly startedAt = inSeconds(0);
  readonly asked: AskedExchange[] = [];
  readonly seen: Seen[] = [];
  /** Answers to the next exchanges. */
  readonly next: (Answer | 'reset')[] = [];
  /** What becomes of the usual answer. */
  answer: (usual: Record<string, unknown>, asked: AskedExchange) => Answer = (body) => ({ status: 200, body });
  /** Seconds that an exchanged token lasts. */
  lifeS = 300;
  /** Exchanged tokens that servers do not take anymore. */
  readonly revoked = new Set<string>();
  /** Nothing is answered before this. */
  before: Promise<void> | undefined;
  /** Exchanges under way, of one caller and of all. */
  readonly atOnce = { ofOne: 0, ofAll: 0 };
  readonly #open: string[] = [];
  readonly #given = new Map<string, JWTPayload>();
  listener: Server | undefined;

  constructor(key: IssuerKey) {
    this.key = key;
  }

  /** The options of a bridge that exchanges tokens here, and its environment. */
  get args(): readonly string[] {
    const auth = ['--auth-issuer', this.issuer, '--auth-audience', TOOLS, '--auth-jwks', this.keyFile];
    return [...auth, '--exchange-token', '--oauth-client-id', 'bridge'];
  }

  readonly env = { MCP_PORTAGE_OAUTH_CLIENT_SECRET: SECRET };

  /** A caller's token. */
  async tokenOf(subject: string, claims: JWTPayload = {}): Promise<string> {
    const usual = { iss: this.issuer, aud: TOOLS, sub: subject, client_id: 'app', scope: 'call', iat: this.startedAt };
    return this.key.sign({ ...usual, exp: inSeconds(300), ...claims });
  }

  async headersOf(subject: string, claims?: JWTPayload): Promise<Record<string, string>> {
    return { Authorization: `Bearer ${await this.tokenOf(subject, claims)}` };
  }

  readonly atIssuer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url === '/keys') return send(response, { status: 200, body: { keys: [this.key.jwk] } });
    if (request.url === '/.well-known/oauth-authorization-server') {
      const { issuer } = this;
      const body = { issuer, jwks_uri: `${issuer}/keys`, token_endpoint: `${issuer}/token` };
      return send(response, { status: 200, body });
    }
    if (request.url !== '/token') return send(response, { status: 404 });
    const parameters = new URLSearchParams(await text(request));
    const { authorization } = request.headers;
    const answer = await this.#token(parameters, authorization);
    if (answer === 'reset') response.destroy();
    else send(response, answer);
  };

  async #token(parameters: URLSearchParams, authorization: string | undefined): Promise<Answer | 'reset'> {
    const caller = await this.#verify(parameters.get('subject_token') ?? '', TOOLS);
    if (caller === undefined) return { status: 400, body: { error: 'invalid_grant' } };
    const asked = { parameters, authorization, caller };
    this.asked.push(asked);
    const name = JSON.stringify([caller.sub, caller.client_id, caller.scope]);
    this.#open.push(name);
    this.atOnce.ofAll = Math.max(this.atOnce.ofAll, this.#open.length);
    this.atOnce.ofOne = Math.max(this.atOnce.ofOne, this.#open.filter((other) => other === name).length);
    await this.before;
    this.#open.splice(this.#open.indexOf(name), 1);
    const first = this.next.shift();
    if (first !== undefined) return first;
    const expected = `Basic ${Buffer.from(`bridge:${SECRET}`).toString('base64')}`;
    if (authorization !== expected) return { status: 401, body: { error: 'invalid_client' } };
    const claims: JWTPayload = {
      iss: this.issuer,
      aud: parameters.get('audience') ?? '',
      ...{ sub: caller.sub ?? '', client_id: caller.client_id, scope: caller.scope },
      ...{ exp: inSeconds(this.lifeS), jti: `${this.asked.length}` },
    };
    const token = await this.key.sign(claims);
    this.#given.set(token, claims);
    const usual = {
      access_token: token,
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: this.lifeS,
    };
    return this.answer(usual, asked);
  }

  async #verify(token: string, audience: string): Promise<JWTPayload | undefined> {
    const key = await importJWK(this.key.jwk);
    const verified = await jwtVerify(token, key, { issuer: this.issuer, audience }).catch(() => undefined);
    return verified?.payload;
  }

  /** Notes what a request to a server shows, and returns whether the server takes it. */
  async admits(request: IncomingMessage, server: string): Promise<boolean> {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const claims = await this.#verify(token, server);
    const isTaken = claims !== undefined && !this.revoked.has(token);
    this.#note(request, token, claims, isTaken);
    return isTaken;
  }

  /** The same at once, for a token that was given out here. */
  admitsAtOnce(request: IncomingMessage): boolean {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const claims = this.#given.get(token);
    const isTaken = claims !== undefined && !this.revoked.has(token);
    this.#note(request, token, claims, isTaken);
    return isTaken;
  }

  #note(request: IncomingMessage, token: string, claims: JWTPayload | undefined, isTaken: boolean): void {
    this.seen.push({
      method: request.method ?? '',
      ...{ subject: claims?.sub, client: claims?.client_id, session: request.headers['mcp-session-id'], token },
      status: isTaken ? 'taken' : 'refused',
    });
  }

  /** A server that takes exchanged tokens made for it, and hands what comes with one to a server that knows of none. */
  async protect(t: ExecutionContext, target: URL | RequestListener): Promise<URL> {
    const serve = target instanceof URL ? forwardTo(target) : target;
    const url: URL = await listen(t, async (request, response) => {
      if (await this.admits(request, url.href)) return serve(request, response as Parameters<RequestListener>[1]);
      request.resume();
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' }).end();
    });
    return url;
  }

  /** Stops listening, until `restart`. */
  async stop(): Promise<void> {
    const { listener } = this;
    await new Promise((resolve) => {
      listener?.close(resolve);
      listener?.closeAllConnections();
    });
  }

  async restart(): Promise<void> {
    await new Promise<void>((resolve) =>
      this.listener?.listen(Number(new URL(this.issuer).port), '127.0.0.1', resolve),
    );
  }
}

export async function startExchangeWorld(t: ExecutionContext): Promise<ExchangeWorld> {
  const world = new ExchangeWorld(await createIssuerKey('one'));
  const url = await listen(
    t,
    (request, response) => void world.atIssuer(request, response),
    (server) => {
      world.listener = server;
    },
  );
  world.issuer = url.origin;
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  world.keyFile = join(folder, 'keys.json');
  writeFileSync(world.keyFile, JSON.stringify({ keys: [world.key.jwk] }));
  return world;
}

async function listen(
  t: ExecutionContext,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
  listening: (server: Server) => void = () => {},
): Promise<URL> {
  const server = createServer((request, response) => void serve(request, response));
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  listening(server);
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

function send(response: ServerResponse, { status, body = {}, text: plain, headers = {} }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(plain ?? JSON.stringify(body));
}
