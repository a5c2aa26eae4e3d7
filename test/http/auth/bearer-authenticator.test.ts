import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import type { AuthConfig } from '../../../src/config/access.ts';
import {
  BearerAuthenticator,
  createTokenChecks,
  type TokenChecks,
} from '../../../src/http/auth/bearer-authenticator.ts';
import type { AuthVerdict } from '../../../src/http/auth/callers.ts';
import { createIssuerKey, inSeconds } from '../../support/fake-issuer.ts';
import { createFakeDeps } from '../../support/fake-peers.ts';

const ISSUER = 'https://auth.example';
const AUDIENCES = ['tools'];

function checksFor(auth: Partial<AuthConfig>): Promise<TokenChecks> {
  return createTokenChecks({
    auth: { tokens: [{ kind: 'value', principal: 'ada', token: 'known' }], oauth: undefined, ...auth },
    createClient: () => Promise.reject(new Error('no client is needed')),
    deps: { ...createFakeDeps(), log: pino({ level: 'silent' }) },
  });
}

/** What becomes of a request with this Authorization. */
function verdictOf(checks: TokenChecks, authorization: string | undefined, url = '/mcp'): Promise<AuthVerdict> {
  const hintsFor = () => ({ resourceMetadata: undefined, scopes: [] });
  const authenticator = new BearerAuthenticator({ ...checks, audiences: AUDIENCES, hintsFor });
  const request = { url, headers: { authorization } } as unknown as IncomingMessage;
  return new Promise((resolve) => authenticator.authenticate(request, resolve));
}

function reasonIn(verdict: AuthVerdict): string {
  return verdict.kind === 'refused' ? verdict.refusal.error.message : verdict.kind;
}

test('without an issuer, the tokens that the user has handed out are accepted and no others', async (t) => {
  const checks = await checksFor({});
  t.deepEqual(await verdictOf(checks, 'Bearer known'), { kind: 'principal', principal: 'ada' });
  t.regex(reasonIn(await verdictOf(checks, 'Bearer unknown')), /none of the tokens known here/);
  t.regex(reasonIn(await verdictOf(checks, 'Basic known')), /send a token in the header Authorization/);
  t.regex(reasonIn(await verdictOf(checks, undefined)), /send a token in the header Authorization/);
});

test('with an issuer, its tokens are accepted as well', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-portage-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'jwks.json');
  const key = await createIssuerKey('one');
  await writeFile(file, JSON.stringify({ keys: [key.jwk] }));
  const oauth = { issuer: ISSUER, audiences: AUDIENCES, scopes: ['call'], keys: { kind: 'file', file } } as const;
  const checks = await checksFor({ oauth });
  const claims = {
    ...{ iss: ISSUER, aud: 'tools', sub: 'bob', exp: inSeconds(60), iat: inSeconds(0) },
    ...{ client_id: 'client', jti: 'one', scope: 'call' },
  };
  t.is((await verdictOf(checks, `Bearer ${await key.sign(claims)}`)).kind, 'principal');
  t.deepEqual(await verdictOf(checks, 'Bearer known'), { kind: 'principal', principal: 'ada' });
  t.regex(reasonIn(await verdictOf(checks, `Bearer ${await key.sign({ ...claims, scope: 'read' })}`)), /lacks a scope/);
  t.regex(
    reasonIn(await verdictOf(checks, `Bearer ${await key.sign({ ...claims, iss: 'https://other.example' })}`)),
    /not accepted/,
  );
});

test('whoever sends a token in the URL is told where it belongs', async (t) => {
  const checks = await checksFor({});
  const verdict = await verdictOf(checks, 'Bearer known', '/mcp?access_token=known');
  t.regex(reasonIn(verdict), /must not be part of the URL.*send it in the header Authorization/);
  t.is((await verdictOf(checks, 'Bearer known', '/mcp?other=1')).kind, 'principal');
});
