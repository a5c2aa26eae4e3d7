/** A server that wants a token, and the authorization server that gives it: both on this machine, both for one test. */
import { createHash } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request as requestHttp,
  type Server,
  ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { ExecutionContext } from 'ava';

/** What came to the authorization server. */
export interface Asked {
  readonly path: string;
  readonly parameters: URLSearchParams;
  readonly authorization: string | undefined;
  /** The proof of possession. */
  readonly dpop: string | undefined;
  /** Of a registration. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  /** In place of JSON. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Undefined: there is nothing against it. */
export type Verdict = Answer | undefined | Promise<Answer | undefined>;

export type Fields = Record<string, unknown>;

/** What each server does can be changed at any time; undefined members of documents are left out. */
export class LoginWorld {
  /** Of the protected server, and of the authorization server. */
  server = '';
  issuer = '';
  readonly asked: Asked[] = [];
  /** Authorization headers that came to the server, in order. */
  readonly shown: (string | undefined)[] = [];
  /** Where the server's metadata is, and whether refusals say so. */
  resourcePath = '/.well-known/oauth-protected-resource/mcp';
  challenge = (): string | undefined => `Bearer resource_metadata="${this.origin}${this.resourcePath}"`;
  resource: Fields = {};
  metadataPath = '/.well-known/oauth-authorization-server';
  metadata: Fields = {};
  /** What the browser is sent back with; undefined: it is not. */
  comeBack: ((parameters: Fields, asked: URLSearchParams) => Fields) | undefined = (parameters) => parameters;
  answerToken: (asked: URLSearchParams, usual: Fields) => Answer = (_, body) => ({ status: 200, body });
  /** Answers to the next requests for tokens, given before anything in them is looked at. */
  refuseTokens: (Answer | 'reset')[] = [];
  /** Looks at a request for tokens before anything in it counts as used. */
  judgeTokens: (asked: Asked) => Verdict = () => undefined;
  /** Where tokens are given; other than metadata says where it sends clients on. */
  tokenPath = '/token';
  movedFrom: Readonly<Record<string, readonly [status: number, location: string]>> = {};
  /** Where a login with a code begins. */
  answerDevice: (asked: URLSearchParams) => Answer = () => ({ status: 404 });
  answerRevocation: (asked: URLSearchParams) => Answer = () => ({ status: 404 });
  answerRegistration: (json: Fields) => Answer = () => ({ status: 201, body: { client_id: 'registered-client' } });
  /** Does the server take the token, and what does it say if not? */
  judge: (token: string, request: IncomingMessage) => Verdict = () => undefined;
  serve: RequestListener = (_, response) => void response.end('served');
  /** The same where another protocol is asked for. */
  upgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void = (_, socket) => void socket.destroy();
  /** Those given out and not taken back. */
  readonly tokens = new Set<string>();
  readonly refreshTokens = new Set<string>();
  /** How often a refresh token came that had been used: then all tokens are taken back. [RFC 9700 4.14.2] */
  reuses = 0;
  readonly #spent = new Set<string>();
  #codes = new Map<string, URLSearchParams>();
  #given = 0;

  get origin(): string {
    return new URL(this.server).origin;
  }

  get url(): URL {
    return new URL(this.server);
  }

  /** How often a path was asked for. */
  count(path: string): number {
    return this.asked.filter((asked) => asked.path === path).length;
  }

  /** What came to a path last. */
  latest(path: string): Asked {
    const found = this.asked.findLast((asked) => asked.path === path);
    if (found === undefined) throw new Error(`nobody asked for ${path}`);
    return found;
  }

  readonly atServer: RequestListener = (request, response) => void this.#answer(request, response, this.serve);

  async #answer(request: IncomingMessage, response: ServerResponse, serve: RequestListener): Promise<void> {
    if (request.url === this.resourcePath) {
      const { origin } = this;
      return send(response, 200, { resource: `${origin}/mcp`, authorization_servers: [this.issuer], ...this.resource });
    }
    if (request.url?.startsWith('/.well-known/')) return send(response, 404, {});
    const { authorization } = request.headers;
    this.shown.push(authorization);
    const token = authorization?.replace(/^(?:Bearer|DPoP) /, '') ?? '';
    const refusal = this.tokens.has(token) ? await this.judge(token, request) : { status: 401, body: {} };
    if (refusal === undefined) return void serve(request, response as Parameters<RequestListener>[1]);
    const challenge = this.challenge();
    request.resume();
    const headers = { ...(challenge !== undefined && { 'www-authenticate': challenge }), ...refusal.headers };
    send(response, refusal.status, refusal.body ?? {}, headers);
  }

  /** Whoever shows no token is answered as any other request. */
  readonly atUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    response.on('finish', () => socket.end());
    void this.#answer(request, response, () => {
      response.detachSocket(socket);
      this.upgrade(request, socket, head);
    });
  };

  readonly atIssuer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '', this.issuer);
    const body = await text(request);
    const isJson = request.headers['content-type']?.includes('json') === true;
    const parameters = request.method === 'POST' && !isJson ? new URLSearchParams(body) : url.searchParams;
    const { authorization, dpop } = request.headers;
    const json: Fields = isJson ? JSON.parse(body) : {};
    const asked: Asked = { path: url.pathname, parameters, authorization, dpop: dpop?.toString(), json };
    this.asked.push(asked);
    const moved = this.movedFrom[url.pathname];
    if (moved !== undefined) return send(response, moved[0], {}, { location: moved[1] });
    switch (url.pathname) {
      case this.metadataPath:
        return send(response, 200, this.#metadata());
      case '/authorize':
        return this.#authorize(parameters, response);
      case this.tokenPath: {
        const answer = this.refuseTokens.shift() ?? (await this.judgeTokens(asked)) ?? this.#token(parameters);
        if (answer === 'reset') return void response.destroy();
        if (answer.text !== undefined) return void response.writeHead(answer.status).end(answer.text);
        return send(response, answer.status, answer.body ?? {}, answer.headers);
      }
      case '/device': {
        const answer = this.answerDevice(parameters);
        return send(response, answer.status, answer.body ?? {}, answer.headers);
      }
      case '/revoke': {
        const answer = this.answerRevocation(parameters);
        return void response.writeHead(answer.status).end();
      }
      case '/register': {
        const answer = this.answerRegistration(json);
        return send(response, answer.status, answer.body ?? {}, answer.headers);
      }
      default:
        return send(response, 404, {});
    }
  };

  #metadata(): Fields {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      registration_endpoint: `${this.issuer}/register`,
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      ...this.metadata,
    };
  }

  #authorize(asked: URLSearchParams, response: ServerResponse): void {
    if (this.comeBack === undefined) return void response.end('a page with a form');
    const code = `code-${this.#codes.size + 1}`;
    this.#codes.set(code, asked);
    const back = new URL(asked.get('redirect_uri') ?? '');
    const parameters = this.comeBack({ code, state: asked.get('state') }, asked);
    for (const [name, value] of Object.entries(parameters)) back.searchParams.set(name, String(value));
    response.writeHead(302, { location: back.href }).end();
  }

  #token(asked: URLSearchParams): Answer {
    const fault = this.#faultOf(asked);
    if (fault !== undefined) return { status: 400, body: { error: 'invalid_grant', error_description: fault } };
    this.#given += 1;
    const [access, refresh] = [`access-${this.#given}`, `refresh-${this.#given}`];
    const usual = { access_token: access, token_type: 'Bearer', refresh_token: refresh };
    const answer = this.answerToken(asked, usual);
    const { access_token: token, refresh_token: refreshToken } = asFields(answer.body);
    if (typeof token === 'string') this.tokens.add(token);
    if (typeof refreshToken === 'string') this.refreshTokens.add(refreshToken);
    return answer;
  }

  #faultOf(asked: URLSearchParams): string | undefined {
    switch (asked.get('grant_type')) {
      case 'authorization_code': {
        const granted = this.#codes.get(asked.get('code') ?? '');
        if (granted === undefined) return 'no such code';
        const hash = createHash('sha256').update(asked.get('code_verifier') ?? '');
        if (hash.digest('base64url') !== granted.get('code_challenge')) return 'the verifier does not fit';
        return granted.get('redirect_uri') === asked.get('redirect_uri') ? undefined : 'another redirect_uri';
      }
      case 'refresh_token':
        return this.#spend(asked.get('refresh_token') ?? '') ? undefined : 'this token was used';
      default:
        return undefined;
    }
  }

  /** Good once. */
  #spend(refreshToken: string): boolean {
    if (this.refreshTokens.delete(refreshToken)) return Boolean(this.#spent.add(refreshToken));
    if (!this.#spent.has(refreshToken)) return false;
    this.reuses += 1;
    this.tokens.clear();
    this.refreshTokens.clear();
    return false;
  }
}

/** Gone when the test ends. */
export async function startLoginWorld(t: ExecutionContext): Promise<LoginWorld> {
  const world = new LoginWorld();
  world.issuer = await listen(
    t,
    createServer((request, response) => void world.atIssuer(request, response)),
  );
  const server = createServer(world.atServer);
  server.on('upgrade', (request, socket, head) => world.atUpgrade(request, socket as Socket, head));
  world.server = `${await listen(t, server)}/mcp`;
  return world;
}

async function listen(t: ExecutionContext, server: Server): Promise<string> {
  // Longer than a login takes: a call that meets the end of its connection is lost, as it should be.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function send(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** What a protected server does with a request that it takes: hands it to a server that knows nothing of tokens. */
export function forwardTo(target: URL): RequestListener {
  return (request, response) => {
    const { method, headers, url = '' } = request;
    // The endpoint that a stream has announced has a path of its own.
    const place = url === '/mcp' ? target : new URL(url, target);
    const onward = requestHttp(place, { method, headers: { ...headers, host: target.host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  };
}
