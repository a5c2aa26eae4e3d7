import type { IncomingMessage, ServerResponse } from 'node:http';
import test from 'ava';
import { type CallerTokens, createKnowCaller, withKnownCallers } from '../../src/bridge/create-routes.ts';
import type { CallerToken } from '../../src/http/auth/caller-token.ts';
import { environmentOf, identifyCaller, nameOfPrincipal, principalOf, tokenOf } from '../../src/http/auth/callers.ts';

const ISSUER = 'https://issuer.example';
const MAPPED = [{ header: 'x-user', variable: 'x-user' }];

/** A token of the issuer, whose signature was checked before. */
function tokenFor(sub: string, scope = 'read'): string {
  const claims = { iss: ISSUER, sub, scope, exp: 4_000_000_000, iat: 1 };
  return ['{}', JSON.stringify(claims), ''].map((part) => Buffer.from(part).toString('base64url')).join('.');
}

function requestOf(principal: string, token: string, headers: Readonly<Record<string, string[]>> = {}) {
  const request = { headers: { authorization: `Bearer ${token}` }, headersDistinct: headers };
  identifyCaller(request as unknown as IncomingMessage, principal);
  return request as unknown as IncomingMessage;
}

/** Serves a request, and returns what is known of its caller; undefined: it was refused. */
function serve(request: IncomingMessage, tokens: CallerTokens) {
  let known: { principal: string; environment: unknown; caller: string | undefined } | undefined;
  const route = withKnownCallers(
    () => {
      const principal = principalOf(request);
      known = { principal, environment: environmentOf(request), caller: tokenOf(request)?.caller };
    },
    createKnowCaller(MAPPED, tokens),
  );
  const response = { writeHead: () => response, end: () => response, setHeader: () => response, headersSent: false };
  route(request, response as unknown as ServerResponse, new URLSearchParams());
  return known;
}

test('a token and mapped headers are both a part of whose session it is', (t) => {
  const noted: CallerToken[] = [];
  const tokens: CallerTokens = { note: (token) => void noted.push(token), areOptional: true };
  const know = (user: string, scope?: string) =>
    serve(requestOf(`${ISSUER}#ann`, tokenFor('ann', scope), { 'x-user': [user] }), tokens);
  const known = [know('one'), know('one'), know('two'), know('one', 'write')];
  t.deepEqual(
    known.map((each) => each?.environment),
    [{ 'x-user': 'one' }, { 'x-user': 'one' }, { 'x-user': 'two' }, { 'x-user': 'one' }],
  );
  t.is(new Set(known.map((each) => each?.principal)).size, 3);
  t.is(known[0]?.principal, known[1]?.principal);
  for (const each of known) t.is(nameOfPrincipal(each?.principal ?? ''), `${ISSUER}#ann`);
  t.deepEqual(
    noted.map(({ caller }) => caller),
    known.map((each) => each?.caller),
  );
});

test('at the aggregate, a caller without a token of the issuer is served, and no token is noted', (t) => {
  const noted: CallerToken[] = [];
  const note = (token: CallerToken): void => void noted.push(token);
  const request = () => requestOf('token:ann', 'handed-out', { 'x-user': ['one'] });
  t.like(serve(request(), { note, areOptional: true }), { caller: undefined, environment: { 'x-user': 'one' } });
  t.is(serve(request(), { note }), undefined);
  t.deepEqual(noted, []);
});
