/**
 * A server of 2025-11-25 on pipes that asks in the middle of a call, and runs a tool as a task. Each run of a tool is a
 * line in the file that is named first.
 */
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , file = ''] = process.argv;
const capabilities = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
const schema = { type: 'object' };
const tools = [
  { name: 'ask', inputSchema: schema },
  { name: 'task', inputSchema: schema, execution: { taskSupport: 'required' } },
  { name: 'endless', inputSchema: schema, execution: { taskSupport: 'required' } },
];
/** Calls that wait for the answer to what was asked, by the id of the question. */
const asked = new Map();
let tasks = 0;

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const textOf = (text) => ({ content: [{ type: 'text', text }] });
const statusOf = (taskId, status) => ({
  taskId,
  status,
  ttl: 60_000,
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
});

function call(id, { name }) {
  appendFileSync(file, `${name}\n`);
  if (name === 'ask') {
    asked.set(`question ${id}`, id);
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
    const params = { mode: 'form', message: 'Who?', requestedSchema };
    return send({ id: `question ${id}`, method: 'elicitation/create', params });
  }
  tasks += 1;
  send({ id, result: { task: statusOf(`${name} ${tasks}`, 'working') } });
}

function answer({ id, method, params, result }) {
  if (method === undefined) return send({ id: asked.get(id), result: textOf(`hello ${result.content.name}`) });
  if (method === 'initialize') {
    return send({
      id,
      result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'asking', version: '1' } },
    });
  }
  if (method === 'tools/list') return send({ id, result: { tools } });
  if (method === 'tools/call') return call(id, params);
  if (method === 'tasks/get') return send({ id, result: statusOf(params.taskId, 'working') });
  // What is endless is not answered.
  if (method === 'tasks/result' && params.taskId.startsWith('task')) return send({ id, result: textOf('done') });
  if (method === 'ping') send({ id, result: {} });
}

createInterface({ input: process.stdin }).on('line', (line) => answer(JSON.parse(line)));
