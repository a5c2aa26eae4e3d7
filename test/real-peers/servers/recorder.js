/**
 * A stdio server without an SDK that remembers every message it was sent, exactly as it came, and does what the
 * methods named `test/…` ask for. What the SDK would hide (ids, tokens, unknown methods) can be seen through it.
 */
import { createInterface } from 'node:readline';

const received = [];
/** Requests of ours that wait for the client: id → what to do with the answer. */
const asked = new Map();
let nextId = 1;
/** What `notifications/test/goOn` does. */
let goOn;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Results by method; undefined: no answer is given. */
const methods = {
  initialize: ({ params }) => ({
    protocolVersion: params.protocolVersion,
    serverInfo: { name: 'recorder', version: '1.0.0' },
    capabilities: {
      logging: {},
      tools: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      prompts: { listChanged: true },
    },
  }),
  ping: () => ({}),
  'logging/setLevel': () => ({}),
  'resources/subscribe': () => ({}),
  'resources/unsubscribe': () => ({}),

  /** Everything received so far. */
  'test/received': () => ({ messages: received.slice() }),
  /** The request itself. */
  'test/echo': (request) => ({ request }),
  'test/pid': () => ({ pid: process.pid }),
  /** Never answered. */
  'test/hold': () => undefined,
  /** Progress `1 … steps`, one every `everyMs`, then the label. */
  'test/steps': async ({ params: { steps, everyMs, label, _meta } }) => {
    for (let progress = 1; progress <= steps; progress += 1) {
      await wait(everyMs);
      if (_meta?.progressToken === undefined) continue;
      const params = { progressToken: _meta.progressToken, progress, total: steps, message: label };
      send({ method: 'notifications/progress', params });
    }
    return { label };
  },
  /** Sends a notification during the call. */
  'test/notify': ({ params: { notification } }) => {
    send(notification);
    return {};
  },
  /** Sends a notification when no call is open. */
  'test/notifyLater': ({ params: { notification, afterMs } }) => {
    setTimeout(send, afterMs, notification);
    return {};
  },
  /** Asks the client and hands its answer back. */
  'test/ask': async ({ params: { request } }) => ({ answer: await question(request) }),
  /** Asks a second time when told to go on, whether the first answer is there or not. */
  'test/askTwice': async ({ params: { requests } }) => {
    const again = new Promise((resolve) => {
      goOn = () => resolve(question(requests[1]));
    });
    return { answers: await Promise.all([question(requests[0]), again]) };
  },
  'test/exit': ({ params: { code } }) => process.exit(code),
  /** Any of the above as a tool. */
  'tools/call': ({ params: { name, arguments: params } }) => methods[name]({ params }),
};

function question(request) {
  const id = nextId++;
  return new Promise((resolve) => {
    asked.set(id, resolve);
    send({ id, ...request });
  });
}

async function answer(request) {
  if (request.method === 'test/error') return send({ id: request.id, error: request.params.error });
  const method = methods[request.method];
  if (method === undefined) {
    const error = { code: -32601, message: 'no such method', data: { method: request.method } };
    return send({ id: request.id, error });
  }
  const result = await method(request);
  if (result !== undefined) send({ id: request.id, result });
}

function settle(response) {
  const { id, ...outcome } = response;
  asked.get(id)?.(outcome);
  asked.delete(id);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line);
  received.push(message);
  if (message.method === undefined) settle(message);
  else if (message.id !== undefined) void answer(message);
  else if (message.method === 'notifications/test/goOn') goOn();
});
