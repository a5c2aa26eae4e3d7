import test from 'ava';
import { BridgeError } from '../../../../src/errors.ts';
import { rpcErrorOf } from '../../../../src/mcp/vocabulary/rpc-errors.ts';
import {
  isSameOffer,
  MAX_INITIALIZE_RESULT_BYTES,
  readInitializeResult,
  refusalOf,
} from '../../../../src/relay/shared/legacy/initialize-result.ts';
import { errorFrame, resultFrame } from '../../../../src/wire/write-message.ts';

test('what a server says of itself is read up to a limit, and beyond it refused with the reason', (t) => {
  const answer = (length: number) => resultFrame(1, { instructions: 'x'.repeat(length) });
  const free = MAX_INITIALIZE_RESULT_BYTES - answer(0).bytes.length;
  t.deepEqual(readInitializeResult(answer(free))?.capabilities, {});
  t.is(readInitializeResult(answer(free + 1)), undefined);
  t.regex(refusalOf('s', answer(free + 1)).message, /^s answered initialize with 1048577 bytes; more than 1048576/);
  t.regex(refusalOf('s', answer(free)).message, /something that is not its result/);
});

test('a refusal repeats what the server says, cut where that is long', (t) => {
  const refusal = refusalOf('s', errorFrame(1, { code: -32603, message: 'x'.repeat(1000) }));
  t.is(refusal.code, 'ERR_UPSTREAM_PROTOCOL');
  t.is(refusal.message, `s refused initialize: "${'x'.repeat(200)}"`);
});

test('a refusal that a bridge has made, for a process that is gone, is about that process', (t) => {
  const exited = new BridgeError('ERR_UPSTREAM_EXITED', 'the server exited with code 1');
  t.is(refusalOf('s', errorFrame(1, rpcErrorOf(exited))).code, 'ERR_UPSTREAM_EXITED');
  const busy = new BridgeError('ERR_SESSION_BUSY', 'not now');
  t.is(refusalOf('s', errorFrame(1, rpcErrorOf(busy))).code, 'ERR_UPSTREAM_PROTOCOL');
});

test('an offer is the same with the same revision and the same capabilities, in whatever order', (t) => {
  const offer = { protocolVersion: '2025-06-18', capabilities: { tools: {}, prompts: {} } };
  t.true(isSameOffer(offer, { ...offer, capabilities: { prompts: {}, tools: {} } }));
  t.false(isSameOffer(offer, { ...offer, protocolVersion: '2025-11-25' }));
  t.false(isSameOffer(offer, { ...offer, capabilities: { tools: {} } }));
});
