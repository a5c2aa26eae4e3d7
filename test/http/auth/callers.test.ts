import type { IncomingMessage } from 'node:http';
import test from 'ava';
import { environmentOf, identifyCaller, mapCaller, principalOf } from '../../../src/http/auth/callers.ts';

const MAPPED = [
  { header: 'x-user', variable: 'USER_NAME' },
  { header: 'x-team', variable: 'TEAM' },
];

/** A request with these headers, from a caller who was let in. */
function requestOf(headers: Readonly<Record<string, readonly string[]>> = {}): IncomingMessage {
  const request = { headersDistinct: headers } as unknown as IncomingMessage;
  identifyCaller(request, 'alice');
  return request;
}

test('the name of a caller is kept with the request, and processes are told nothing', (t) => {
  const request = requestOf();
  t.is(principalOf(request), 'alice');
  t.is(environmentOf(request), undefined);
});

test('whoever asks for the caller of a request that was not let in has a bug', (t) => {
  const request = {} as IncomingMessage;
  t.throws(() => principalOf(request), { message: 'a request is served that was not let in' });
  t.throws(() => environmentOf(request), { message: 'a request is served that was not let in' });
});

test('mapped headers become variables, what is absent or empty sets none', (t) => {
  const request = requestOf({ 'x-user': ['ann'], 'x-team': [''] });
  t.is(mapCaller(request, MAPPED), undefined);
  t.deepEqual(environmentOf(request), { USER_NAME: 'ann' });
  const without = requestOf();
  t.is(mapCaller(without, MAPPED), undefined);
  t.deepEqual(environmentOf(without), {});
});

test('a caller of one name with other values is another caller', (t) => {
  const nameWith = (user: string): string => {
    const request = requestOf({ 'x-user': [user] });
    mapCaller(request, MAPPED);
    return principalOf(request);
  };
  t.is(nameWith('ann'), nameWith('ann'));
  t.not(nameWith('ann'), nameWith('bob'));
  t.true(nameWith('ann').includes('alice'), 'and still one of that name');
});

for (const [what, values, expected] of [
  ['comes twice', ['ann', 'bob'], 'present only once, but was sent several times'],
  ['is too long', ['x'.repeat(1025)], 'at most 1024 characters'],
  ['is no printable ASCII', ['änn'], 'printable ASCII'],
  ['holds a control character after what is printable', ['ann\u0007'], 'printable ASCII'],
] as const) {
  test(`a mapped header that ${what} is refused, and the caller keeps the name`, (t) => {
    const request = requestOf({ 'x-user': values });
    const refusal = mapCaller(request, MAPPED);
    t.is(refusal?.code, 'ERR_HTTP_HEADER');
    t.is(refusal?.message, `The header x-user is used here and must be ${expected}.`);
    t.is(principalOf(request), 'alice');
  });
}

test('the longest value is taken', (t) => {
  const request = requestOf({ 'x-user': ['x'.repeat(1024)] });
  t.is(mapCaller(request, MAPPED), undefined);
});
