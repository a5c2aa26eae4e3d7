import test from 'ava';
import { readTraceContext } from '../../src/mcp/classify/trace-context.ts';
import type { TraceContext } from '../../src/mcp/vocabulary/meta.ts';
import type { CallEnding } from '../../src/relay/observer.ts';
import type { CallTrace, TracedRequest, Tracer } from '../../src/relay/tracer.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { createCalls, FakeObserver, ORIGIN } from '../support/calls.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeLane } from '../support/fake-peers.ts';
import { clientFrame, serverFrame } from '../support/frames.ts';

const CLIENT = { ...ORIGIN, era: 'legacy', revision: '2025-11-25', name: 'c', version: '1' } as const;
const SENT: TraceContext = { traceparent: '00-ours', tracestate: undefined, baggage: 'k=v' };

class FakeTracer implements Tracer {
  readonly begun: TracedRequest[] = [];
  readonly endings: CallEnding[] = [];

  begin(request: TracedRequest): CallTrace {
    this.begun.push(request);
    const ended = (ending: CallEnding): void => void this.endings.push(ending);
    return { traceId: 'a trace', sent: () => SENT, ended };
  }
}

function open(request: Frame, tracer: Tracer | undefined) {
  const observer = new FakeObserver();
  const calls = createCalls(new FakeClock(), { observer, tracer });
  const owner = { principal: CLIENT.principal, describe: () => CLIENT, ended: () => undefined };
  const call = calls.receive(request, new FakeLane());
  return { observer, calls, owner, call, sent: calls.open(owner, call, request) };
}

const toolCall = (params: object = { name: 'echo' }) => clientFrame({ id: 1, method: 'tools/call', params });

test('without a tracer a request goes to its server as the frame that came', (t) => {
  const request = toolCall({ name: 'echo', _meta: { traceparent: '00-theirs' } });
  const { sent, observer } = open(request, undefined);
  t.is(sent, request);
  t.is(observer.calls[0]?.traceId, undefined);
});

test('a tracer is told what the request says, and the server what the tracer says', (t) => {
  const tracer = new FakeTracer();
  const { sent, observer } = open(toolCall({ name: 'echo', _meta: { traceparent: '00-theirs' } }), tracer);
  t.deepEqual(tracer.begun, [
    {
      client: CLIENT,
      id: 1,
      method: 'tools/call',
      tool: 'echo',
      prompt: undefined,
      inMessage: { traceparent: '00-theirs', tracestate: undefined, baggage: undefined },
      inHttp: undefined,
    },
  ]);
  t.deepEqual(readTraceContext(sent), SENT);
  t.is(observer.calls[0]?.traceId, 'a trace');
});

test('a tracer is told of each end once, and of a tool that failed', (t) => {
  const tracer = new FakeTracer();
  const answers = [{ isError: true }, { isError: false }, { isError: 'yes' }, {}];
  for (const result of answers) {
    const { calls, owner, call } = open(toolCall(), tracer);
    calls.answer(owner, call, serverFrame({ id: 1, result }));
  }
  t.deepEqual(
    tracer.endings.map(({ outcome }) => outcome.kind),
    ['tool-error', 'answered', 'answered', 'answered'],
  );
  const { calls, owner, call } = open(toolCall(), tracer);
  calls.cancel(owner, call);
  t.like(tracer.endings.at(-1), { outcome: { kind: 'cancelled' } });
});

test('a tracer is told which prompt is got, and names that are long are cut', (t) => {
  const tracer = new FakeTracer();
  const long = 'x'.repeat(1000);
  for (const [method, params] of [
    ['prompts/get', { name: 'greet' }],
    ['prompts/get', { name: long }],
    ['prompts/get', { name: 7 }],
    ['resources/read', { name: 'greet' }],
    [long, {}],
  ] as const) {
    open(clientFrame({ id: 1, method, params }), tracer);
  }
  const cut = 'x'.repeat(256);
  t.deepEqual(
    tracer.begun.map(({ method, tool, prompt }) => [method, tool, prompt]),
    [
      ['prompts/get', undefined, 'greet'],
      ['prompts/get', undefined, cut],
      ['prompts/get', undefined, undefined],
      ['resources/read', undefined, undefined],
      [cut, undefined, undefined],
    ],
  );
});

test('only a tool fails in its result', (t) => {
  const tracer = new FakeTracer();
  const { calls, owner, call } = open(clientFrame({ id: 1, method: 'prompts/get' }), tracer);
  calls.answer(owner, call, serverFrame({ id: 1, result: { isError: true } }));
  t.is(tracer.endings[0]?.outcome.kind, 'answered');
});
