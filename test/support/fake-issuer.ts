import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import type { Clock } from '../../src/deps.ts';
import { HttpClient } from '../../src/http/client/client.ts';

/** Right or wrong; undefined leaves one out. */
export type Claims = Readonly<Record<string, unknown>>;

/** A key of an issuer, to sign tokens with. */
export interface IssuerKey {
  readonly kid: string;
  readonly jwk: JWK;
  /** `typ` of the header is `at+jwt` unless it says otherwise; undefined leaves it out. */
  readonly sign: (claims: Claims, header?: { readonly typ: string | undefined }) => Promise<string>;
}

export async function createIssuerKey(kid: string, algorithm = 'ES256'): Promise<IssuerKey> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return {
    kid,
    jwk: { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' },
    sign: (claims, { typ } = { typ: 'at+jwt' }) =>
      new SignJWT(claims as JWTPayload)
        .setProtectedHeader({ alg: algorithm, kid, ...(typ !== undefined && { typ }) })
        .sign(privateKey),
  };
}

export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

/** What a document request is answered with. */
export interface IssuerAnswer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Not before this. */
  readonly after?: Promise<void>;
}

/** An authorization server as far as a resource server sees it: its documents, on this machine. */
export interface FakeIssuer {
  readonly url: string;
  /** Paths that were asked for, in order. */
  readonly asked: string[];
  /** By path; anything else is 404. */
  readonly answers: Map<string, IssuerAnswer>;
}

/** Gone when the test ends. It has metadata and no keys until `answers` has some. */
export async function startIssuer(t: ExecutionContext, path = ''): Promise<FakeIssuer> {
  const asked: string[] = [];
  const answers = new Map<string, IssuerAnswer>();
  const server = createServer(async (request, response) => {
    asked.push(request.url ?? '');
    const { status, body, headers, after } = answers.get(request.url ?? '') ?? { status: 404 };
    await after;
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
  });
  // Longer than anybody here is idle.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const url = `${origin}${path}`;
  const metadata = { issuer: url, jwks_uri: `${origin}/keys` };
  answers.set(`/.well-known/oauth-authorization-server${path}`, { status: 200, body: metadata });
  return { url, asked, answers };
}

/** What asks issuers for their documents; closed when the test ends. */
export function createIssuerClient(t: ExecutionContext, clock: Clock): HttpClient {
  const client = new HttpClient({
    headers: new Map(),
    bearerTokenFile: undefined,
    credentials: undefined,
    tls: { caFile: undefined, certFile: undefined, keyFile: undefined },
    proxyEnv: {},
    socketPath: undefined,
    userAgent: 'test',
    clock,
  });
  t.teardown(() => client.close());
  return client;
}

export function publish(issuer: FakeIssuer, ...keys: readonly IssuerKey[]): void {
  issuer.answers.set('/keys', { status: 200, body: { keys: keys.map(({ jwk }) => jwk) } });
}
