import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import type { ModernToLegacyOptions } from '../../../../src/eras/modern-to-legacy/dialer.ts';
import { COALESCING_MS } from '../../../../src/eras/modern-to-legacy/questions/parked-call.ts';
import { MAX_STATUS_TEXT } from '../../../../src/eras/modern-to-legacy/tasks/task-tools.ts';
import { BridgeError } from '../../../../src/errors.ts';
import type { OutcomeStorage } from '../../../../src/relay/shared-state.ts';
import { collectLog } from '../../../process/collected-log.ts';
import { createFakeDeps } from '../../../support/fake-peers.ts';
import { ALL, type AskOptions, type Message, ModernBridge, SERVER_RESULT } from '../modern-bridge.ts';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const GREETING = {
  ...SERVER_RESULT,
  capabilities: { ...SERVER_RESULT.capabilities, tasks: { requests: { tools: { call: {} } }, cancel: {} } },
};
const TOOL = { name: 'x', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } };
const CREATED = {
  taskId: 'legacy-1',
  status: 'working',
  statusMessage: 'begun',
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
  ttl: 60_000,
  pollInterval: 1000,
};
const DECLARING = { ...ALL, extensions: { [EXTENSION]: {} } };
const RELATED = { 'io.modelcontextprotocol/related-task': { taskId: 'legacy-1' } };
const QUESTION = { id: 'q', method: 'elicitation/create', params: { message: 'who?', _meta: RELATED } };

type BridgeOptions = Partial<ModernToLegacyOptions>;

/** A call that has become a task its client follows. */
class FollowedTask {
  readonly bridge: ModernBridge;
  readonly created: Message;
  /** The id of the request that waits for the outcome. */
  readonly outcomeId;

  constructor(options: BridgeOptions = {}, task: object = CREATED) {
    this.bridge = new ModernBridge({ greeting: GREETING, ...options });
    const call = this.bridge.call({}, { capabilities: DECLARING });
    this.bridge.says({ id: this.bridge.heardOnly('tools/list').id, result: { tools: [TOOL] } });
    this.bridge.says({ id: this.bridge.heardOnly('tools/call').id, result: { task } });
    this.created = call.answer();
    this.outcomeId = this.bridge.heardOnly('tasks/result').id;
  }

  get taskId(): string {
    return this.created.result.taskId;
  }

  ask(method: string, params: object = {}, options: AskOptions = {}) {
    return this.bridge.ask(method, { taskId: this.taskId, ...params }, { capabilities: DECLARING, ...options });
  }

  /** What `tasks/get` answers when the server says this. */
  get(said: object = {}): Message {
    const look = this.ask('tasks/get');
    const id = this.bridge.heard(0).find(({ method }) => method === 'tasks/get')?.id;
    this.bridge.says({ id, result: { ...CREATED, ...said } }, 0);
    return look.answer();
  }

  /** The server has the outcome. */
  ends(outcome: object): void {
    this.bridge.says({ id: this.outcomeId, ...outcome });
  }
}

test('a call that runs only as a task is answered with the task, flat and under an id of its own', (t) => {
  const { created, taskId } = new FollowedTask();
  t.deepEqual(created.result, {
    resultType: 'task',
    taskId,
    status: 'working',
    statusMessage: 'begun',
    createdAt: CREATED.createdAt,
    lastUpdatedAt: CREATED.lastUpdatedAt,
    ttlMs: 60_000,
    pollIntervalMs: 1000,
    _meta: { 'io.modelcontextprotocol/serverInfo': GREETING.serverInfo },
  });
  t.not(taskId, CREATED.taskId);
});

test('the task is asked for by its id: what the server says now, and in the end the result', (t) => {
  const task = new FollowedTask();
  const { result } = task.get({ statusMessage: 'half' });
  t.like(result, { resultType: 'complete', taskId: task.taskId, status: 'working', statusMessage: 'half' });
  t.is(task.get({ status: 'completed' }).result.status, 'working', 'not before its result is there');
  task.ends({ result: { content: [], structuredContent: { n: 1 }, _meta: RELATED } });
  const ended = task.ask('tasks/get').answer().result;
  t.like(ended, { resultType: 'complete', status: 'completed', result: { content: [], structuredContent: { n: 1 } } });
  t.false('io.modelcontextprotocol/related-task' in ended.result._meta);
  t.deepEqual(task.bridge.heard(), [], 'the server need not be asked again');
});

test('a tool that reports an error is complete; only a JSON-RPC error is a failure', (t) => {
  const reported = new FollowedTask();
  reported.get({ status: 'failed' });
  reported.ends({ result: { content: [], isError: true } });
  t.like(reported.ask('tasks/get').answer().result, { status: 'completed', result: { isError: true } });
  const failed = new FollowedTask();
  failed.ends({ error: { code: -32050, message: 'no' } });
  const { result } = failed.ask('tasks/get').answer();
  t.like(result, { status: 'failed', error: { code: -32603, data: { bridge: { originalCode: -32050 } } } });
  t.false('result' in result);
});

test('to cancel a task is acknowledged at once, and shows when the server has done it', (t) => {
  const task = new FollowedTask();
  t.deepEqual(Object.keys(task.ask('tasks/cancel').answer().result), ['resultType', '_meta']);
  const cancel = task.bridge.heardOnly('tasks/cancel');
  t.deepEqual(cancel.params, { taskId: 'legacy-1' });
  t.is(task.ask('tasks/cancel').answer().result.resultType, 'complete');
  t.deepEqual(task.bridge.heard(), [], 'it is asked once');
  t.is(task.get().result.status, 'working');
  task.bridge.says({ id: cancel.id, result: { ...CREATED, status: 'cancelled' } });
  const { result } = task.ask('tasks/get').answer();
  t.is(result.status, 'cancelled');
  t.false('error' in result);
});

test('a task that had ended before it was canceled has its result; a canceled one without result has none', (t) => {
  const late = new FollowedTask();
  late.ask('tasks/cancel');
  late.bridge.says({ id: late.bridge.heardOnly('tasks/cancel').id, error: { code: -32602, message: 'ended' } });
  late.ends({ error: { code: -32603, message: 'broke' } });
  t.is(late.ask('tasks/get').answer().result.status, 'failed');
  const early = new FollowedTask();
  early.ask('tasks/cancel');
  early.ends({ error: { code: -32603, message: 'cancelled' } });
  t.is(early.ask('tasks/get').answer().result.status, 'cancelled');
});

test('of a task only its state is told; what else a server says of it stands in the log', (t) => {
  const { log, entries } = collectLog();
  const task = new FollowedTask({ deps: { ...createFakeDeps(), log } });
  task.bridge.says({ method: 'notifications/x.example/seen' });
  t.like(entries.at(-1), { level: 20, method: 'notifications/x.example/seen' });
});

test('what a task asks is in its state until it is answered, each question under a key of its own', (t) => {
  const task = new FollowedTask();
  task.bridge.says(QUESTION);
  const request = { method: 'elicitation/create', params: { message: 'who?' } };
  const asked = task.get({ status: 'input_required' }).result;
  t.is(asked.status, 'input_required');
  t.deepEqual(asked.inputRequests, { 'elicitation-1': request });
  const inputResponses = { 'elicitation-1': { action: 'accept', content: { a: 1 } }, 'elicitation-9': {} };
  const update = task.ask('tasks/update', { inputResponses });
  t.deepEqual(Object.keys(update.answer().result), ['resultType', '_meta']);
  t.like(task.bridge.heard(), [{ id: 'q', result: { action: 'accept', content: { a: 1 } } }]);
  t.is(task.get().result.status, 'working');
  task.ask('tasks/update', { inputResponses });
  t.deepEqual(task.bridge.heard(), [], 'an answer is delivered once');
  task.bridge.says({ ...QUESTION, id: 'q2' });
  t.deepEqual(Object.keys(task.get().result.inputRequests), ['elicitation-2']);
  task.bridge.says({ method: 'notifications/cancelled', params: { requestId: 'q2' } });
  t.is(task.get().result.status, 'working');
});

test('a task has its session to itself until it ends; a call meanwhile goes to another', (t) => {
  const task = new FollowedTask();
  const { bridge } = task;
  const sessionOf = () => {
    const before = bridge.dialer.dialed.length;
    bridge.call({ name: 'y' }).leaves();
    return bridge.dialer.dialed.length === before ? 'known' : 'new';
  };
  t.is(sessionOf(), 'new');
  t.is(sessionOf(), 'known');
  bridge.says({ id: 'q', method: 'roots/list' }, 0);
  t.deepEqual(Object.keys(task.get().result.inputRequests), ['roots-1'], 'what names no task can only be its');
});

test('a task is its owner’s alone, and only for clients that declare the extension', (t) => {
  const task = new FollowedTask();
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const other = task.ask(method, {}, { principal: 'bob' });
    const forged = task.ask(method, { taskId: 'legacy-1' });
    t.deepEqual(other.answer().error, forged.answer().error);
    t.is(task.ask(method, {}, { principal: 'bob' }).answer().error?.code, -32602);
    const { error } = task.ask(method, {}, { capabilities: ALL }).answer();
    t.like(error, { code: -32021, data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } } });
  }
  t.deepEqual(task.bridge.heard(), []);
  for (const method of ['tasks/list', 'tasks/result']) t.is(task.ask(method).answer().error?.code, -32601);
});

test('who listens to a task hears of it at once and of every change', (t) => {
  const task = new FollowedTask();
  const notifications = { taskIds: [task.taskId, 'unknown'] };
  const stream = task.bridge.ask('subscriptions/listen', { notifications }, { id: 'l', capabilities: DECLARING });
  const [acknowledged, first] = stream.told();
  t.deepEqual(acknowledged?.params.notifications, { taskIds: [task.taskId] });
  t.is(first?.method, 'notifications/tasks');
  t.like(first?.params, { taskId: task.taskId, status: 'working', statusMessage: 'begun' });
  t.is(first?.params._meta['io.modelcontextprotocol/subscriptionId'], 'l');
  task.bridge.clock.advance(1000);
  const poll = task.bridge.heardOnly('tasks/get');
  task.bridge.says({ id: poll.id, result: { ...CREATED, statusMessage: 'half' } });
  t.is(stream.answer().params.statusMessage, 'half');
  task.bridge.clock.advance(1000);
  task.bridge.says({
    id: task.bridge.heardOnly('tasks/get').id,
    result: { ...CREATED, statusMessage: 'half' },
  });
  t.deepEqual(stream.told(), [], 'nothing has changed');
  task.bridge.says(QUESTION);
  t.deepEqual(Object.keys(stream.answer().params.inputRequests), ['elicitation-1']);
  task.ends({ result: { content: [] } });
  t.like(stream.answer().params, { status: 'completed', result: { content: [] } });
  t.like(task.bridge.heard(), [{ id: 'q', result: { action: 'cancel' } }], 'nobody will answer that anymore');
  task.bridge.clock.advance(10_000);
  t.deepEqual(task.bridge.heard(), [], 'what has ended is not asked for');
});

test('a server that wants to be asked once in a month is asked once in a minute for those who listen', (t) => {
  const task = new FollowedTask({}, { ...CREATED, ttl: null, pollInterval: 30 * 24 * 3600_000 });
  const notifications = { taskIds: [task.taskId] };
  task.bridge.ask('subscriptions/listen', { notifications }, { capabilities: DECLARING });
  task.bridge.clock.advance(59_999);
  t.deepEqual(task.bridge.heard(), []);
  task.bridge.clock.advance(1);
  t.is(task.bridge.heardOnly('tasks/get').params.taskId, CREATED.taskId);
});

test('who looks at a task and does not wait for the answer leaves no request behind', (t) => {
  const task = new FollowedTask();
  const look = task.ask('tasks/get');
  const { id } = task.bridge.heardOnly('tasks/get');
  look.leaves();
  t.deepEqual(task.bridge.heardOnly('notifications/cancelled').params, { requestId: id });
  task.bridge.says({ id, result: CREATED });
  t.deepEqual(look.told(), []);
  t.is(task.get().result.status, 'working');
  t.deepEqual(task.bridge.heard(), []);
});

test('of what a server says of its task nothing is kept that is no status, and no text without end', (t) => {
  const endless = 'x'.repeat(MAX_STATUS_TEXT + 1);
  const task = new FollowedTask({}, { ...CREATED, statusMessage: endless, more: endless, createdAt: { a: 1 } });
  const { statusMessage, createdAt, lastUpdatedAt } = task.created.result;
  t.deepEqual([statusMessage, createdAt, lastUpdatedAt], [undefined, undefined, CREATED.lastUpdatedAt]);
  t.is(task.get({ statusMessage: endless.slice(1) }).result.statusMessage, endless.slice(1));
  t.is(task.get({ statusMessage: endless }).result.statusMessage, undefined);
});

for (const taskSupport of ['required', 'optional'] as const) {
  const supporting = { ...TOOL, execution: { taskSupport } };

  /** A call of a client that declares tasks, as far as its server has it. */
  const sent = (options: BridgeOptions = {}) => {
    const bridge = new ModernBridge({ greeting: GREETING, ...options });
    const call = bridge.call({}, { capabilities: DECLARING });
    bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [supporting] } });
    return { bridge, call, request: bridge.heardOnly('tools/call') };
  };

  test(`a client that declares tasks gets one where they are ${taskSupport}`, (t) => {
    const { bridge, call, request } = sent();
    t.deepEqual(request.params, { name: 'x', arguments: {}, task: { ttl: 30 * 60_000 } });
    bridge.says({ id: request.id, result: { task: CREATED } });
    const { taskId, resultType } = call.answer().result;
    t.is(resultType, 'task');
    bridge.says({ id: bridge.heardOnly('tasks/result').id, result: { content: [], structuredContent: { n: 1 } } });
    const look = bridge.ask('tasks/get', { taskId }, { capabilities: DECLARING });
    t.like(look.answer().result, { status: 'completed', result: { structuredContent: { n: 1 } } });
  });

  test(`a server that answers at once although tasks are ${taskSupport} has answered the call`, (t) => {
    const { bridge, call, request } = sent({ sharing: 'nobody' });
    bridge.says({ id: request.id, result: { content: [{ type: 'text', text: 'done' }] } });
    t.like(call.answer().result, { resultType: 'complete', content: [{ text: 'done' }] });
    t.deepEqual(bridge.heard(), []);
    t.is(bridge.dialer.latest.link.closedWith.length, 1, 'the session was given back');
  });

  test(`a server that refuses a call whose tasks are ${taskSupport} has refused it, and is not asked twice`, (t) => {
    const { bridge, call, request } = sent();
    bridge.says({ id: request.id, error: { code: -32601, message: 'no such tool' } });
    t.like(call.answer().error, { code: -32602, message: 'no such tool' });
    t.deepEqual(bridge.heard(), []);
  });

  test(`a call whose tasks are ${taskSupport} can be asked something before it becomes a task`, (t) => {
    const { bridge, call, request } = sent();
    bridge.says({ ...QUESTION, params: { message: 'who?' } });
    bridge.collect();
    const { requestState } = call.answer().result;
    const inputResponses = { 'elicitation-1': { action: 'decline' } };
    const goesOn = (capabilities: object) => bridge.call({ requestState, inputResponses }, { capabilities });
    const retry = goesOn(DECLARING);
    t.like(bridge.heard(), [{ id: 'q', result: { action: 'decline' } }]);
    bridge.says({ id: request.id, result: { task: CREATED } });
    t.is(retry.answer().result.resultType, 'task');
  });

  test(`a client whose last request declares no tasks gets the result where they are ${taskSupport}`, (t) => {
    const { bridge, call, request } = sent();
    bridge.says({ ...QUESTION, params: { message: 'who?' } });
    bridge.collect();
    const { requestState } = call.answer().result;
    const retry = bridge.call({ requestState, inputResponses: { 'elicitation-1': { action: 'decline' } } });
    bridge.heard();
    bridge.says({ id: request.id, result: { task: CREATED } });
    bridge.says({ id: bridge.heardOnly('tasks/result').id, result: { content: [] } });
    t.is(retry.answer().result.resultType, 'complete');
  });

  test(`a client that leaves before its task exists has it ended where tasks are ${taskSupport}`, (t) => {
    const { bridge, call, request } = sent({ sharing: 'nobody' });
    call.leaves();
    t.deepEqual(bridge.heard(), [], 'a task is not canceled like other requests');
    bridge.says({ id: request.id, result: { task: CREATED } });
    const { id, params } = bridge.heardOnly('tasks/cancel');
    t.deepEqual(params, { taskId: 'legacy-1' });
    bridge.says({ id, result: { ...CREATED, status: 'cancelled' } });
    t.is(bridge.dialer.latest.link.closedWith.length, 1, 'the session was given back');
    t.is(bridge.clock.pendingTimers, 0);
  });
}

test('a server that creates no task while its client leaves is left in the end, with the request withdrawn', (t) => {
  const leaving = () => {
    const bridge = new ModernBridge({ greeting: GREETING });
    const call = bridge.call({}, { capabilities: DECLARING });
    bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [TOOL] } });
    const { id } = bridge.heardOnly('tools/call');
    call.leaves();
    return { bridge, id };
  };
  const silent = leaving();
  silent.bridge.clock.advance(1999);
  t.deepEqual(silent.bridge.heard(), []);
  silent.bridge.clock.advance(1);
  t.is(silent.bridge.heardOnly('notifications/cancelled').params.requestId, silent.id);
  silent.bridge.says({ id: silent.id, result: { task: CREATED } });
  t.deepEqual(silent.bridge.heard(), []);
  const answering = leaving();
  answering.bridge.says({ id: answering.id, result: { content: [] } });
  answering.bridge.clock.advance(2000);
  t.deepEqual(answering.bridge.heard(), []);
  const lost = leaving();
  lost.bridge.exits();
  lost.bridge.clock.advance(2000);
  t.deepEqual(lost.bridge.heard(), []);
});

for (const [title, { execution, capabilities = DECLARING }] of Object.entries<{
  execution?: object;
  capabilities?: object;
}>({
  'that says nothing of tasks': {},
  'that forbids tasks': { execution: { taskSupport: 'forbidden' } },
  'with optional tasks, of a client that declares none': {
    execution: { taskSupport: 'optional' },
    capabilities: ALL,
  },
})) {
  test(`a call of a tool ${title} is plain`, (t) => {
    const bridge = new ModernBridge({ greeting: GREETING });
    const call = bridge.call({}, { capabilities });
    bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [{ ...TOOL, execution }] } });
    const { id, params } = bridge.heardOnly('tools/call');
    t.deepEqual(params, { name: 'x', arguments: {} });
    bridge.says({ id, result: { content: [] } });
    t.is(call.answer().result.resultType, 'complete');
  });
}

for (const [title, { execution, task }] of Object.entries<{ execution?: object; task?: object }>({
  'that is called plainly': {},
  'that is called as a task': { execution: { taskSupport: 'optional' }, task: { ttl: 30 * 60_000 } },
})) {
  test(`what a client says of a task, as in the legacy era, means nothing for a tool ${title}`, (t) => {
    const bridge = new ModernBridge({ greeting: GREETING });
    bridge.call({ task: { ttl: 5, pollInterval: 1 } }, { capabilities: DECLARING });
    bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [{ ...TOOL, execution }] } });
    t.deepEqual(bridge.heardOnly('tools/call').params, { name: 'x', arguments: {}, ...(task && { task }) });
  });
}

for (const tasks of [undefined, {}, { list: {}, cancel: {} }, { requests: { tools: {} } }]) {
  test(`a server is not asked for its tools, and called plainly, if its tasks are ${JSON.stringify(tasks)}`, (t) => {
    const greeting = { ...SERVER_RESULT, capabilities: { ...SERVER_RESULT.capabilities, tasks } };
    const bridge = new ModernBridge({ greeting });
    bridge.call({}, { capabilities: DECLARING });
    t.deepEqual(bridge.heardOnly('tools/call').params, { name: 'x', arguments: {} });
  });
}

test('a tool whose tasks come and go is called as its server says at that time', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING, attribution: 'stream' });
  const formOf = (taskSupport: string | undefined) => {
    bridge.says({ method: 'notifications/tools/list_changed' });
    bridge.call({}, { capabilities: DECLARING });
    const tools = [{ ...TOOL, execution: { taskSupport } }];
    bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools } });
    return 'task' in bridge.heardOnly('tools/call').params ? 'task' : 'plain';
  };
  bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [] } });
  t.false('task' in bridge.heardOnly('tools/call').params);
  t.deepEqual(['optional', undefined, 'required', 'forbidden'].map(formOf), ['task', 'plain', 'task', 'plain']);
});

test('a task whose id cannot be kept is none: its call is answered with what the server said', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING });
  const call = bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [TOOL] } });
  const task = { ...CREATED, taskId: 'x'.repeat(MAX_STATUS_TEXT + 1) };
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { task } });
  t.is(call.answer().result.resultType, 'complete');
  t.deepEqual(bridge.heard(), []);
});

test('who does not declare the extension cannot listen to tasks', (t) => {
  const task = new FollowedTask();
  const { error } = task.bridge.ask('subscriptions/listen', { notifications: { taskIds: [task.taskId] } }).answer();
  t.is(error?.code, -32021);
});

test('a task that is over lets its session go, and is known until its time is up', (t) => {
  const task = new FollowedTask({ sharing: 'nobody' });
  t.is(task.bridge.dialer.latest.link.closedWith.length, 0);
  task.ends({ result: { content: [] } });
  t.is(task.bridge.dialer.latest.link.closedWith.length, 1);
  task.bridge.clock.advance(59_999);
  t.is(task.ask('tasks/get').answer().result.status, 'completed');
  task.bridge.clock.advance(1);
  t.is(task.ask('tasks/get').answer().error?.code, -32602);
  t.is(task.bridge.clock.pendingTimers, 0);
});

test('a task whose time is up is ended at the server', (t) => {
  const task = new FollowedTask({ sharing: 'nobody' }, { ...CREATED, ttl: null });
  t.is(task.created.result.ttlMs, 30 * 60_000);
  task.bridge.clock.advance(30 * 60_000);
  const { id } = task.bridge.heardOnly('tasks/cancel');
  task.bridge.says({ id, result: { ...CREATED, status: 'cancelled' } });
  t.is(task.bridge.dialer.latest.link.closedWith.length, 1);
  task.bridge.clock.advance(2000);
  t.is(task.ask('tasks/get').answer().error?.code, -32602);
  t.is(task.bridge.clock.pendingTimers, 0);
});

test('a server that ends takes its tasks with it, but for the results it has given', (t) => {
  const lost = new FollowedTask();
  const look = lost.ask('tasks/get');
  lost.bridge.exits();
  t.like(look.answer().error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_EXITED' } } });
  t.is(lost.ask('tasks/get').answer().error?.code, -32602);
  const kept = new FollowedTask();
  kept.ends({ result: { content: [] } });
  kept.bridge.exits();
  t.is(kept.ask('tasks/get').answer().result.status, 'completed');
});

test('a connection that breaks while the task runs is not its failure: the outcome is asked for again', (t) => {
  const task = new FollowedTask();
  const broken = new BridgeError('ERR_UPSTREAM_CLOSED', 'the stream broke');
  task.bridge.dialer.latest.listener.serverFault({ error: broken, kind: 'error', id: task.outcomeId });
  t.is(task.get().result.status, 'working');
  task.bridge.clock.advance(5000);
  const { id } = task.bridge.heardOnly('tasks/result');
  task.bridge.says({ id, result: { content: [] } });
  t.is(task.ask('tasks/get').answer().result.status, 'completed');
});

test('a connection that breaks while the task is looked at fails only that', (t) => {
  const task = new FollowedTask();
  const look = task.ask('tasks/get');
  const broken = new BridgeError('ERR_UPSTREAM_HTTP', 'the server answered 503');
  const { id } = task.bridge.heardOnly('tasks/get');
  task.bridge.dialer.latest.listener.serverFault({ error: broken, kind: 'error', id });
  t.like(look.answer().error, { code: -32603, data: { bridge: { reason: 'ERR_UPSTREAM_HTTP' } } });
  t.is(task.get().result.status, 'working');
});

test('with too many tasks a call is waited for instead', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING, parkingLimits: { perPrincipal: 1, total: 9 } });
  const create = () => {
    const call = bridge.call({}, { capabilities: DECLARING });
    const results: Record<string, object> = { 'tools/list': { tools: [TOOL] }, 'tools/call': { task: CREATED } };
    for (let round = 0; round < 2; round += 1) {
      for (const { id, method = '' } of bridge.heard())
        if (method in results) bridge.says({ id, result: results[method] });
    }
    return call;
  };
  t.is(create().answer().result.resultType, 'task');
  const waiting = create();
  t.deepEqual(waiting.told(), []);
});

test('with too many tasks a call is plain where tasks are optional', (t) => {
  const bridge = new ModernBridge({ greeting: GREETING, attribution: 'stream', parkingLimits: { perPrincipal: 1 } });
  const optional = { ...TOOL, execution: { taskSupport: 'optional' } };
  const call = bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [optional] } });
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { task: CREATED } });
  const { taskId } = call.answer().result;
  const { id } = bridge.heardOnly('tasks/result');
  bridge.call({}, { capabilities: DECLARING });
  t.false('task' in bridge.heardOnly('tools/call').params);
  bridge.call({}, { capabilities: DECLARING, principal: 'bob' });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [optional] } });
  t.true('task' in bridge.heardOnly('tools/call').params, 'another caller has room of its own');
  bridge.says({ id, result: { content: [] } }, 0);
  bridge.clock.advance(60_000);
  t.is(bridge.ask('tasks/get', { taskId }, { capabilities: DECLARING }).answer().error?.code, -32602);
  bridge.call({}, { capabilities: DECLARING });
  t.true('task' in (bridge.heard(0).find(({ method }) => method === 'tools/call')?.params ?? {}));
});

test('with tasks that hold too much a call is waited for instead, until they end', (t) => {
  const { bridge } = new FollowedTask({ attribution: 'stream', parkingLimits: { bytesPerPrincipal: 5000 } });
  bridge.heard();
  const create = (taskId: string): Message | undefined => {
    const call = bridge.call({ arguments: { text: 'x'.repeat(3000) } }, { capabilities: DECLARING });
    bridge.says({ id: bridge.heardOnly('tools/call').id, result: { task: { ...CREATED, taskId } } });
    return call.told()[0];
  };
  t.is(create('legacy-2')?.result.resultType, 'task');
  const { id } = bridge.heardOnly('tasks/result');
  t.is(create('legacy-3'), undefined);
  bridge.heard();
  bridge.says({ id, result: { content: [] } });
  t.is(create('legacy-4')?.result.resultType, 'task');
});

test('what a task asks is held as well, until it is answered', (t) => {
  const task = new FollowedTask({ parkingLimits: { bytesPerPrincipal: 5000 } });
  const { bridge } = task;
  const params = { message: 'x'.repeat(1000), _meta: RELATED };
  const asks = (id: string) => {
    bridge.says({ ...QUESTION, id, params });
    return bridge.heard();
  };
  t.deepEqual(asks('q'), []);
  t.like(asks('r'), [{ id: 'r', result: { action: 'cancel' } }]);
  t.is(task.get().result.status, 'input_required');
  task.ask('tasks/update', { inputResponses: { 'elicitation-1': { action: 'decline' } } });
  bridge.heard();
  t.deepEqual(asks('s'), []);
});

test('outcomes beyond the limit are evicted, the oldest first, and a client that asks for one is told why', (t) => {
  const task = new FollowedTask({ parkingLimits: { bytes: 1000 } });
  const { bridge } = task;
  task.ends({ result: { content: [{ type: 'text', text: 'x'.repeat(400) }] } });
  t.is(task.ask('tasks/get').answer().result.status, 'completed');
  const call = bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { task: { ...CREATED, taskId: 'legacy-2' } } });
  const { taskId } = call.answer().result;
  bridge.says({ id: bridge.heardOnly('tasks/result').id, result: { content: [{ text: 'y'.repeat(2000) }] } });
  const { error } = task.ask('tasks/get').answer();
  t.like(error, { code: -32602, data: { bridge: { reason: 'task_given_up' } } });
  t.true(error?.message.includes('--max-parked-bytes'));
  t.is(task.ask('tasks/get', {}, { principal: 'bob' }).answer().error?.data, undefined, 'others are told nothing');
  t.is(task.ask('tasks/get', { taskId }).answer().result.status, 'completed', 'the newest is kept, whatever its size');
  bridge.clock.advance(60_000);
  t.is(task.ask('tasks/get', { taskId }).answer().error?.data, undefined);
});

test('the extension is told of where the server has tasks', (t) => {
  const discover = (options: BridgeOptions & { greeting?: object }) =>
    new ModernBridge({ greeting: GREETING, ...options }).ask('server/discover').answer().result.capabilities;
  t.deepEqual(discover({}).extensions, { [EXTENSION]: {} });
  t.false('tasks' in discover({}));
  t.is(discover({ greeting: SERVER_RESULT }).extensions, undefined);
});

test('the end of the bridge leaves no task behind, and nobody without an answer', async (t) => {
  const task = new FollowedTask();
  const look = task.ask('tasks/get');
  await task.bridge.modern.close();
  t.like(look.answer().error, { data: { bridge: { reason: 'ERR_SESSION_CLOSED' } } });
  t.is(task.bridge.clock.pendingTimers, 0);
});

/** Storage that has stored something once it is told so. */
function slowStorage() {
  const states: string[] = [];
  let stored = (): void => {};
  const outcomes: OutcomeStorage = {
    isHeld: true,
    keep: ({ state }) => {
      states.push(state.kind);
      return new Promise((resolve) => {
        const before = stored;
        stored = () => {
          before();
          resolve(true);
        };
      });
    },
    find: async () => undefined,
    onLost: () => () => {},
  };
  return { outcomes, states, stores: () => stored() };
}

function createAt(outcomes: OutcomeStorage) {
  const bridge = new ModernBridge({ greeting: GREETING, outcomes });
  const call = bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [TOOL] } });
  bridge.says({ id: bridge.heardOnly('tools/call').id, result: { task: CREATED } });
  return { bridge, call };
}

test('a client is told of its task when other replicas know of it, not before', async (t) => {
  const { outcomes, states, stores } = slowStorage();
  const { call } = createAt(outcomes);
  await turn();
  t.deepEqual(states, ['begun']);
  t.deepEqual(call.told(), []);
  stores();
  await turn();
  t.is(call.answer().result.status, 'working');
});

test('a client that was asked before its call became a task is told of the task when it is stored', async (t) => {
  const { outcomes, stores } = slowStorage();
  const bridge = new ModernBridge({ greeting: GREETING, outcomes });
  const asked = bridge.call({}, { capabilities: DECLARING });
  bridge.says({ id: bridge.heardOnly('tools/list').id, result: { tools: [TOOL] } });
  const { id } = bridge.heardOnly('tools/call');
  bridge.says({ ...QUESTION, params: { message: 'who?' } });
  bridge.clock.advance(COALESCING_MS);
  stores();
  await turn();
  const { requestState } = asked.answer().result;
  const inputResponses = { 'elicitation-1': { action: 'decline' } };
  const retry = bridge.call({ requestState, inputResponses }, { id: 8, capabilities: DECLARING });
  bridge.says({ id, result: { task: CREATED } });
  await turn();
  t.deepEqual(retry.told(), []);
  stores();
  await turn();
  t.is(retry.answer().result.resultType, 'task');
});

test('a task that is over before other replicas know of it is told as it was created', async (t) => {
  const { outcomes, states, stores } = slowStorage();
  const { bridge, call } = createAt(outcomes);
  bridge.says({ id: bridge.heardOnly('tasks/result').id, result: { content: [] } });
  t.deepEqual(states, ['begun', 'over']);
  t.deepEqual(call.told(), []);
  stores();
  await turn();
  const { taskId, status } = call.answer().result;
  t.is(status, 'working');
  const look = bridge.ask('tasks/get', { taskId }, { capabilities: DECLARING });
  t.is(look.answer().result.status, 'completed');
});

test('a client that leaves before its task is stored is told nothing, and its task ends', async (t) => {
  const { outcomes, stores } = slowStorage();
  const { bridge, call } = createAt(outcomes);
  bridge.heardOnly('tasks/result');
  call.leaves();
  stores();
  await turn();
  t.deepEqual(call.told(), []);
  t.deepEqual(bridge.heardOnly('tasks/cancel').params, { taskId: 'legacy-1' });
});
