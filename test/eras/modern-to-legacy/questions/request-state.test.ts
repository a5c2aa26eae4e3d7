import test from 'ava';
import {
  RequestStates,
  requestDigest,
  stateError,
} from '../../../../src/eras/modern-to-legacy/questions/request-state.ts';
import { MAX_STATE_LENGTH } from '../../../../src/mcp/classify/input-responses.ts';
import { requestFrame } from '../../../../src/wire/write-message.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const digestOf = (method: string, params: object): string => requestDigest(requestFrame(1, method, params));
const BINDING = { principal: 'ada', digest: digestOf('tools/call', { name: 'x', arguments: { a: 1 } }) };
const CONTENTS = { callId: 'call-1', round: 2, expiresAtMs: 1000 };

function sealed() {
  const clock = new FakeClock();
  const states = new RequestStates(clock);
  return { clock, states, state: states.seal(CONTENTS, BINDING) };
}

test('a state opens for the caller and the request it was sealed for', (t) => {
  const { states, state } = sealed();
  t.deepEqual(states.open(state, BINDING), { kind: 'opened', ...CONTENTS });
  t.true(state.length <= 512);
});

test('a state with any bit changed is refused', (t) => {
  const { states, state } = sealed();
  for (let at = 0; at < state.length; at++) {
    for (const bit of [1, 2, 4, 8, 16, 32, 64]) {
      const bytes = Buffer.from(state);
      bytes[at] = (bytes[at] ?? 0) ^ bit;
      const opened = states.open(bytes.toString('latin1'), BINDING);
      if (opened.kind === 'opened') return t.fail(`bit ${bit} of character ${at}`);
    }
  }
  t.pass();
});

test('a state longer than any of ours is not looked at, whoever sealed it', (t) => {
  const { states } = sealed();
  const state = states.seal({ ...CONTENTS, callId: 'x'.repeat(MAX_STATE_LENGTH) }, BINDING);
  t.deepEqual(states.open(state, BINDING), { kind: 'refused', fault: 'state_invalid' });
});

test('what is no state at all is refused', (t) => {
  const { states, state } = sealed();
  for (const no of [
    undefined,
    1,
    '',
    '.',
    'e30.',
    'abc',
    state.slice(0, -1),
    `${state}=`,
    `${state}A`,
    'x'.repeat(5000),
  ]) {
    t.deepEqual(states.open(no, BINDING), { kind: 'refused', fault: 'state_invalid' }, String(no));
  }
});

test('a state of another caller is as good as none, whatever else is right or wrong with it', (t) => {
  const { clock, states, state } = sealed();
  const ofBob = { ...BINDING, principal: 'bob' };
  t.deepEqual(states.open(state, ofBob), { kind: 'refused', fault: 'state_invalid' });
  t.deepEqual(states.open(state, { ...ofBob, digest: 'other' }), { kind: 'refused', fault: 'state_invalid' });
  clock.advance(1000);
  t.deepEqual(states.open(state, ofBob), { kind: 'refused', fault: 'state_invalid' });
  t.false(
    Buffer.from(state.split('.')[0] ?? '', 'base64url')
      .toString()
      .includes('ada'),
  );
});

test('a state of another request or past its time is refused, each in its own words', (t) => {
  const { clock, states, state } = sealed();
  const other = digestOf('tools/call', { name: 'x', arguments: { a: 2 } });
  t.deepEqual(states.open(state, { ...BINDING, digest: other }), { kind: 'refused', fault: 'state_mismatch' });
  clock.advance(1000);
  t.deepEqual(states.open(state, BINDING), { kind: 'refused', fault: 'state_expired' });
});

test('a state of another process says which call it continues, and is not taken for a forged one', (t) => {
  const { state } = sealed();
  const { callId, round } = CONTENTS;
  t.deepEqual(new RequestStates(new FakeClock()).open(state, BINDING), { kind: 'foreign', callId, round });
});

test('a state of another process that does not say which call it continues is lost', (t) => {
  const { state } = sealed();
  const [payload = '', seal] = state.split('.');
  const fields = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>;
  for (const changed of [{ c: 1 }, { c: undefined }, { r: '2' }, { r: undefined }]) {
    const text = Buffer.from(JSON.stringify({ ...fields, ...changed })).toString('base64url');
    const opened = new RequestStates(new FakeClock()).open(`${text}.${seal}`, BINDING);
    t.deepEqual(opened, { kind: 'refused', fault: 'state_lost' }, JSON.stringify(changed));
  }
});

test('a digest says what is asked for, not how it is written or in which attempt', (t) => {
  const first = digestOf('tools/call', { name: 'x', arguments: { b: [1, { d: 1, c: 2 }], a: 1 } });
  const retry = { requestState: 's', inputResponses: {}, _meta: { progressToken: 2 } };
  t.is(digestOf('tools/call', { arguments: { a: 1, b: [1, { c: 2, d: 1 }] }, ...retry, name: 'x' }), first);
  t.not(digestOf('prompts/get', { name: 'x', arguments: { b: [1, { d: 1, c: 2 }], a: 1 } }), first);
  t.not(digestOf('tools/call', { name: 'x', arguments: { b: [{ d: 1, c: 2 }, 1], a: 1 } }), first);
});

test('a refused state is answered as wrong params, with the reason in the data', (t) => {
  const error = stateError('state_expired');
  t.is(error.code, -32602);
  t.deepEqual(error.data, { bridge: { reason: 'state_expired' } });
});

test('a call of any number of values is recognized when its client sends it again, and no other is', (t) => {
  const rows = (last: number): number[] => [...Array.from({ length: 200_000 }, () => 0), last];
  const first = digestOf('tools/call', { name: 'x', arguments: { rows: rows(1) } });
  const retry = { inputResponses: { a: rows(1) }, requestState: 's', _meta: {} };
  t.is(digestOf('tools/call', { arguments: { rows: rows(1) }, ...retry, name: 'x' }), first);
  t.not(digestOf('tools/call', { name: 'x', arguments: { rows: rows(2) } }), first);
  t.not(digestOf('tools/call', { name: 'y', arguments: { rows: rows(1) } }), first);
});
