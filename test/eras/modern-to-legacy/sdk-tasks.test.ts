import test, { type ExecutionContext } from 'ava';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import { createTaskServer } from '../../fixtures/servers/runs-as-task.js';
import { startStreamable } from '../../support/sdk-servers.ts';
import { waitFor } from '../../support/wait-for.ts';
import { dialStreamable } from '../../upstream/remote-dialers.ts';
import { Conversations, dialProgram } from './modern-conversations.ts';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const PLAIN = { elicitation: { form: {} } };
const DECLARING = { ...PLAIN, extensions: { [EXTENSION]: {} } };
const ANSWER = { action: 'accept', content: { name: 'Ada' } };

/** The ways to a server of the official SDK v1 that has nothing but tasks. */
const TRANSPORTS: Readonly<Record<string, (t: ExecutionContext) => Promise<SessionDialer>>> = {
  stdio: async () => dialProgram('../../fixtures/servers/runs-as-task.js'),
  'Streamable HTTP': async (t) => {
    const server = await startStreamable({ createServer: createTaskServer });
    t.teardown(() => server.close());
    return dialStreamable(server.url);
  },
};

interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly inputRequests?: object;
  readonly result?: object;
}

class TaskClient {
  readonly #client: Conversations;

  constructor(t: ExecutionContext, dialer: SessionDialer) {
    this.#client = new Conversations(t, dialer);
  }

  async ask(method: string, params: object, capabilities: object = DECLARING): Promise<Record<string, unknown>> {
    const { result, error } = await this.#client.request(method, params, { capabilities });
    if (result === undefined) throw new Error(JSON.stringify(error));
    return result;
  }

  async create(name: string): Promise<string> {
    const task = await this.ask('tools/call', { name, arguments: {} });
    if (task.resultType !== 'task') throw new Error(JSON.stringify(task));
    return String(task.taskId);
  }

  until(taskId: string, status: string): Promise<Task> {
    return waitFor(
      async () => {
        const task = (await this.ask('tasks/get', { taskId })) as unknown as Task;
        return task.status === status ? task : undefined;
      },
      { message: `the task to be ${status}` },
    );
  }
}

for (const [name, dial] of Object.entries(TRANSPORTS)) {
  test(`${name}: a task is created, followed to its end, and canceled`, async (t) => {
    const client = new TaskClient(t, await dial(t));
    const discovered = await client.ask('server/discover', {});
    t.like(discovered, { capabilities: { extensions: { [EXTENSION]: {} } } });
    const slow = await client.until(await client.create('slow'), 'completed');
    t.like(slow.result, { content: [{ text: 'done' }] });
    const broken = await client.until(await client.create('breaks'), 'completed');
    t.like(broken.result, { content: [{ text: 'broke' }], isError: true });
    const taskId = await client.create('waits');
    await client.ask('tasks/cancel', { taskId });
    t.is((await client.until(taskId, 'cancelled')).result, undefined);
  });

  test(`${name}: a task that asks shows what, and goes on with the answer`, async (t) => {
    const client = new TaskClient(t, await dial(t));
    const taskId = await client.create('asks');
    const { inputRequests } = await client.until(taskId, 'input_required');
    t.like(inputRequests, { 'elicitation-1': { method: 'elicitation/create', params: { message: 'who?' } } });
    await client.ask('tasks/update', { taskId, inputResponses: { 'elicitation-1': ANSWER } });
    t.like((await client.until(taskId, 'completed')).result, { content: [{ text: 'accept Ada' }] });
  });

  test(`${name}: a client that knows no tasks gets the result, and is asked within its call`, async (t) => {
    const client = new TaskClient(t, await dial(t));
    const slow = await client.ask('tools/call', { name: 'slow', arguments: {} }, PLAIN);
    t.like(slow, { resultType: 'complete', content: [{ text: 'done' }] });
    const call = { name: 'asks', arguments: {} };
    const { requestState } = await client.ask('tools/call', call, PLAIN);
    const inputResponses = { 'elicitation-1': ANSWER };
    const answered = await client.ask('tools/call', { ...call, requestState, inputResponses }, PLAIN);
    t.like(answered, { resultType: 'complete', content: [{ text: 'accept Ada' }] });
  });
}
