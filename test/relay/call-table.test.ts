import test from 'ava';
import { Call, CallTable, MAX_INITIALIZE_BYTES } from '../../src/relay/call.ts';
import { FakeLane } from '../support/fake-peers.ts';

interface Open {
  readonly method: string;
  readonly openQuestions?: number;
}

function tableOf(...open: readonly Open[]): { table: CallTable; calls: readonly Call[] } {
  const table = new CallTable();
  const calls = open.map(({ method, openQuestions = 0 }, id) => {
    const call = new Call(id, method, new FakeLane(), undefined, 0);
    call.openQuestions = openQuestions;
    table.add(call);
    return call;
  });
  return { table, calls };
}

const tool: Open = { method: 'tools/call' };
const prompt: Open = { method: 'prompts/get' };
const read: Open = { method: 'resources/read' };
const list: Open = { method: 'tools/list' };
const custom: Open = { method: 'x-vendor/work' };
const asking = (open: Open): Open => ({ ...open, openQuestions: 1 });

for (const [title, open, expected] of [
  ['nobody when nothing is open', [], undefined],
  ['the only call, whatever it is', [list], 0],
  ['the only call, even if it is asking already', [asking(tool)], 0],
  ['the only call, even if it hardly asks and is asking already', [asking(list)], 0],
  ['the latest of several alike', [tool, tool, tool], 2],
  ['a tool call rather than a later list', [tool, list], 0],
  ['a prompt rather than a later list', [prompt, list], 0],
  ['a resource rather than a later list', [read, custom, list], 0],
  ['the latest interactive one, whichever kind', [tool, prompt, read, list], 2],
  ['one that is not asking rather than a later one that is', [tool, asking(tool)], 0],
  ['an interactive one that is asking rather than a list', [asking(tool), list], 0],
  ['the latest when all are asking', [asking(tool), asking(tool)], 1],
  ['the latest of methods that hardly ask', [custom, list], 1],
] as const) {
  test(`a question of the server most likely belongs to ${title}`, (t) => {
    const { table, calls } = tableOf(...open);
    t.is(table.likelyAsker(), expected === undefined ? undefined : calls[expected]);
  });
}

test('the sole call is known only while it is the only one', (t) => {
  const { table, calls } = tableOf(tool, list);
  const [first, second] = calls as [Call, Call];
  t.is(table.sole(), undefined);
  table.remove(first);
  t.is(table.sole(), second);
  table.remove(second);
  t.is(table.sole(), undefined);
  t.is(table.size, 0);
});

test('a call leaves the open state once', (t) => {
  for (const leave of [(e: Call) => e.settle(), (e: Call) => e.cancel('client')]) {
    const call = new Call(1, 'ping', new FakeLane(), undefined, 0);
    t.is(call.state.kind, 'open');
    leave(call);
    t.throws(() => call.settle());
    t.throws(() => call.cancel('timeout'));
  }
});

test('an initialize may be as large as the limit that its refusal names', (t) => {
  const { table } = tableOf();
  const initialize = new Call(1, 'initialize', new FakeLane(), undefined, 0);
  initialize.requestBytes = MAX_INITIALIZE_BYTES;
  t.is(table.refusalOf(initialize), undefined);
  initialize.requestBytes += 1;
  t.like(table.refusalOf(initialize), { code: 'ERR_WIRE_FRAME_TOO_LARGE' });
  t.regex(table.refusalOf(initialize)?.message ?? '', /at most 1048576 bytes.*leave out what the server does not need/);
  const large = new Call(1, 'tools/call', new FakeLane(), undefined, 0);
  large.requestBytes = MAX_INITIALIZE_BYTES + 1;
  t.is(table.refusalOf(large), undefined, 'a call may be larger');
});

test('a call that cannot be added is refused with what its client can do', (t) => {
  const table = new CallTable(1);
  const [first, second] = ['a', 'b'].map((id) => new Call(id, 'tools/call', new FakeLane(), undefined, 0));
  if (first === undefined || second === undefined) return t.fail();
  t.is(table.refusalOf(first), undefined);
  table.add(first);
  t.is(table.refusalOf(first)?.code, 'ERR_WIRE_MESSAGE');
  t.regex(table.refusalOf(first)?.message ?? '', /^Request id "a" is already in use.*use a new id/);
  t.is(table.refusalOf(second)?.code, 'ERR_SESSION_BUSY');
  t.regex(table.refusalOf(second)?.message ?? '', /^This session has 1 unanswered calls.*wait for answers/);
  table.remove(first);
  t.is(table.refusalOf(second), undefined);
});
