import test from 'ava';
import {
  readTraceContext,
  traceHeadersOf,
  withoutTraceContext,
  withTraceContext,
} from '../../../src/mcp/classify/trace-context.ts';
import { clientFrame } from '../../support/frames.ts';

const CONTEXT = { traceparent: '00-a-b-01', tracestate: 'v=1', baggage: 'k=v' };
const ALONE = { traceparent: '00-c-d-00', tracestate: undefined, baggage: undefined };

function request(params: string | undefined) {
  return clientFrame(
    `{"jsonrpc":"2.0","id":1,"method":"tools/call"${params === undefined ? '' : `,"params":${params}`}}`,
  );
}

test('reads what _meta says, in whatever order', (t) => {
  const frame = request('{"_meta":{"baggage":"k=v","x":1,"tracestate":"v=1","traceparent":"00-a-b-01"},"name":"x"}');
  t.deepEqual(readTraceContext(frame), CONTEXT);
  t.is(readTraceContext(request(undefined)), undefined);
  t.is(readTraceContext(request('{"_meta":{"x":1}}')), undefined);
  t.is(readTraceContext(request('[]')), undefined);
});

test('takes no text for one that is of another type, too long, or there twice', (t) => {
  const nothing = { traceparent: undefined, tracestate: undefined, baggage: undefined };
  t.deepEqual(readTraceContext(request('{"_meta":{"traceparent":7,"tracestate":null,"baggage":{}}}')), nothing);
  t.deepEqual(readTraceContext(request('{"_meta":{"traceparent":"a","traceparent":"b"}}')), nothing);
  t.deepEqual(readTraceContext(request(`{"_meta":{"baggage":"${'b'.repeat(8193)}"}}`)), nothing);
  t.is(readTraceContext(request(`{"_meta":{"baggage":"${'b'.repeat(8192)}"}}`))?.baggage?.length, 8192);
  t.is(readTraceContext(request('{"_meta":{"traceparent":"a"},"_meta":{"traceparent":"b"}}')), undefined);
});

const EDITS: Readonly<Record<string, readonly [string | undefined, string]>> = {
  'no params': [undefined, '{"_meta":{"traceparent":"00-c-d-00"}}'],
  'no _meta': ['{ "name" : "x" }', '{ "name" : "x","_meta":{"traceparent":"00-c-d-00"} }'],
  'an empty _meta': ['{"_meta":{}}', '{"_meta":{"traceparent":"00-c-d-00"}}'],
  'another context, of which nothing stays': [
    '{"_meta":{"tracestate":"v=1","own":1e2,"traceparent":"00-a-b-01","baggage":"k=v"},"n":1.0}',
    '{"_meta":{"own":1e2,"traceparent":"00-c-d-00"},"n":1.0}',
  ],
};

for (const [what, [before, after]] of Object.entries(EDITS)) {
  test(`puts a context into a request with ${what}, and leaves all else as it was written`, (t) => {
    const edited = withTraceContext(request(before), ALONE);
    t.is(edited.bytes.toString(), request(after).bytes.toString());
    t.deepEqual([edited.id, edited.method, edited.kind], [1, 'tools/call', 'request']);
    t.deepEqual(readTraceContext(edited), ALONE);
  });
}

test('leaves alone what it cannot edit without changing what it means', (t) => {
  for (const params of ['[]', '{"_meta":7}', '{"_meta":null}', '{"_meta":{"a":1},"_meta":{"b":2}}', '{"_META":{}}']) {
    const frame = request(params);
    t.is(withTraceContext(frame, ALONE), frame, params);
  }
});

test('a context is headers only where it can be', (t) => {
  t.deepEqual(traceHeadersOf(withTraceContext(request('{}'), CONTEXT)), CONTEXT);
  t.deepEqual(traceHeadersOf(request('{"_meta":{"traceparent":"a\\r\\nb: c","baggage":"k=v"}}')), { baggage: 'k=v' });
  t.is(traceHeadersOf(request('{}')), undefined);
  const notification = clientFrame({ method: 'notifications/x', params: { _meta: CONTEXT } });
  t.is(traceHeadersOf(notification), undefined);
});

test('parameters that are kept belong to no trace', (t) => {
  t.deepEqual(withoutTraceContext({ a: 1, _meta: CONTEXT }), { a: 1 });
  t.deepEqual(withoutTraceContext({ a: 1, _meta: { ...CONTEXT, own: 2 } }), { a: 1, _meta: { own: 2 } });
  const kept = { a: 1, _meta: { own: 2 } };
  t.is(withoutTraceContext(kept), kept);
});
