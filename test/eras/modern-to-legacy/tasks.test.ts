import test from 'ava';
import type { ModernToLegacyOptions } from '../../../src/eras/modern-to-legacy/dialer.ts';
import { ModernBridge, SERVER_RESULT } from './modern-bridge.ts';

const TASKS = { requests: { tools: { call: {} } }, cancel: {} };
const GREETING = { ...SERVER_RESULT, capabilities: { ...SERVER_RESULT.capabilities, tasks: TASKS } };
const SLOW = { name: 'x', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } };
const QUICK = { name: 'y', inputSchema: { type: 'object' }, execution: { taskSupport: 'optional' } };

/** A call of a tool that runs as a task, as far as the server has created it. */
function createdTask(options: Partial<ModernToLegacyOptions> = {}) {
  const bridge = new ModernBridge({ greeting: GREETING, ...options });
  const call = bridge.call();
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [QUICK], nextCursor: 'n' } });
  const page = bridge.heardOnly('tools/list');
  bridge.says({ id: page.id, result: { tools: [SLOW] } });
  const creation = bridge.heardOnly('tools/call');
  bridge.says({ id: creation.id, result: { task: { taskId: 'task-1', status: 'working' } } });
  return { bridge, call, creation, page, waiting: bridge.heardOnly('tasks/result') };
}

test('a tool that runs only as a task is waited for, and its result is plain', (t) => {
  const { bridge, call, creation, page, waiting } = createdTask();
  t.deepEqual(page.params, { cursor: 'n' });
  t.like(creation.params, { name: 'x', arguments: {}, task: { ttl: 30 * 60_000 } });
  t.deepEqual(waiting.params, { taskId: 'task-1' });
  t.deepEqual(call.told(), []);
  const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 'task-1' }, mine: 1 };
  bridge.says({ id: waiting.id, result: { content: [], _meta } });
  const { result } = call.answer();
  t.is(result.resultType, 'complete');
  t.deepEqual(Object.keys(result._meta).sort(), ['io.modelcontextprotocol/serverInfo', 'mine']);
});

test('what a task asks is asked in the call', (t) => {
  const { bridge, call, waiting } = createdTask();
  const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 'task-1' } };
  bridge.says({ id: 'q', method: 'elicitation/create', params: { message: 'who?', _meta } });
  bridge.collect();
  const { inputRequests, requestState } = call.answer().result;
  t.deepEqual(inputRequests, { 'elicitation-1': { method: 'elicitation/create', params: { message: 'who?' } } });
  const again = bridge.call({ requestState, inputResponses: { 'elicitation-1': { action: 'decline' } } });
  t.like(bridge.heard()[0], { id: 'q', result: { action: 'decline' } });
  bridge.says({ id: waiting.id, result: { content: [] } });
  t.is(again.answer().result.resultType, 'complete');
});

test('what names its task is asked in the call of that task, whatever was sent since; of an unknown one nobody is asked', (t) => {
  const { bridge, call } = createdTask({ attribution: 'stream' });
  const later = bridge.call({ name: 'y' });
  bridge.heardOnly('tools/call');
  const ask = (id: string, taskId: string) => {
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId } };
    bridge.says({ id, method: 'elicitation/create', params: { message: 'who?', _meta } });
  };
  ask('of the task', 'task-1');
  ask('of no task', 'task-9');
  t.like(bridge.heard(), [{ id: 'of no task', result: { action: 'cancel' } }]);
  bridge.collect();
  const answers = { 'elicitation-1': { action: 'decline' } };
  bridge.call({ requestState: call.answer().result.requestState, inputResponses: answers });
  t.like(bridge.heard(), [{ id: 'of the task' }]);
  t.deepEqual(later.told(), []);
});

test('who leaves ends the task', (t) => {
  const { bridge, call, waiting } = createdTask();
  call.leaves();
  const [withdrawn, ended, ...rest] = bridge.heard();
  t.like(withdrawn, { method: 'notifications/cancelled', params: { requestId: waiting.id } });
  t.like(ended, { method: 'tasks/cancel', params: { taskId: 'task-1' } });
  bridge.says({ id: ended?.id, result: {} });
  t.deepEqual([...rest, ...bridge.heard()], []);
  bridge.clock.advance(5 * 60_000);
  t.is(bridge.dialer.latest.link.closedWith.length, 1, 'the session was given back');
});

test('tools are looked at once, until they change', (t) => {
  const { bridge } = createdTask({ attribution: 'stream' });
  bridge.call({ name: 'y' });
  t.deepEqual(bridge.heardOnly('tools/call').params, { name: 'y', arguments: {} });
  bridge.says({ method: 'notifications/tools/list_changed' });
  bridge.call({ name: 'y' });
  t.truthy(bridge.heardOnly('tools/list'));
});

test('tools that could not be looked at are looked at with the next call', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING });
  bridge.call();
  bridge.says({ id: bridge.heardOnly('tools/list').id, error: { code: -32000, message: 'not now' } });
  t.false('task' in bridge.heardOnly('tools/call').params);
  bridge.call();
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [SLOW] } });
  t.true('task' in bridge.heardOnly('tools/call').params);
});

test('roots that are asked for while the tools are looked at are asked before the call', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING });
  const call = bridge.call();
  const { id } = bridge.heardOnly('tools/list');
  bridge.says({ id: 'r', method: 'roots/list' });
  bridge.says({ id, result: { tools: [SLOW] } });
  bridge.collect();
  t.deepEqual(bridge.heard(), []);
  const { requestState } = call.answer().result;
  bridge.call({ requestState, inputResponses: { 'roots-1': { roots: [] } } });
  const [roots, sent] = bridge.heard();
  t.is(roots?.id, 'r');
  t.like(sent, { method: 'tools/call', params: { task: { ttl: 30 * 60_000 } } });
});

test('a server without tasks is not asked for its tools', (t) => {
  const bridge = new ModernBridge();
  bridge.call();
  bridge.heardOnly('tools/call');
  t.pass();
});
