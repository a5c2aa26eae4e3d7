/**
 * argv: 'legacy' or 'modern', then nothing for stdio, or a port for HTTP. A server that reads no more of a message than
 * its ends, so that it answers large ones at once, and whose own messages are as dear to read as it is asked for: the
 * name of a tool says `<place>/<filling>/<bytes>`.
 */
import { createServer } from 'node:http';
import { createLineSplitter } from '../server/lines.js';
import { makeMembers, makeValue } from './shapes.js';

const [era = 'legacy', port] = process.argv.slice(2);
const isModern = era === 'modern';
const INFO = { name: 'stalls', version: '1.0.0' };
const META_INFO = `"_meta":{"io.modelcontextprotocol/serverInfo":${JSON.stringify(INFO)}}`;
const COMPLETE = isModern ? '"resultType":"complete",' : '';
const HINTS = isModern ? '"ttlMs":0,"cacheScope":"private",' : '';
const CONTENT = '"content":[{"type":"text","text":"done"}]';

const HEADED = Array.from({ length: 8 }, (_, index) => [`p${index}`, { type: 'string', 'x-mcp-header': `P${index}` }]);
const SCHEMA = JSON.stringify({ type: 'object', properties: Object.fromEntries(HEADED) });
const TOOL = `{"name":"absorb","inputSchema":${SCHEMA}}`;

/** Results with a hole. */
const PLACES = {
  envelope: (fill, id) => `{"jsonrpc":"2.0",${fill.members}"id":${id},"result":{${COMPLETE}${CONTENT}}}`,
  'envelope at the end': (fill, id) =>
    `{"jsonrpc":"2.0","id":${id},"result":{${COMPLETE}${CONTENT}},${fill.members.slice(0, -1)}}`,
  'result before the id': (fill, id) =>
    `{"result":{${COMPLETE}${fill.members}${CONTENT}},"x":null,"id":${id},"jsonrpc":"2.0"}`,
  result: (fill, id) => result(id, `${fill.members}${CONTENT}`),
  meta: (fill, id) => result(id, `"_meta":{${fill.members}"z":0},${CONTENT}`),
  structured: (fill, id) => result(id, `"structuredContent":${fill.value},"content":[]`),
  content: (fill, id) => result(id, `"content":[${fill.items}]`),
  audio: (fill, id) =>
    result(id, `"content":[{"type":"audio","data":"","mimeType":"audio/wav","annotations":${fill.value}}]`),
  error: (fill, id) => `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"no","data":${fill.value}}}`,
  'error members': (fill, id) => `{"jsonrpc":"2.0","id":${id},"error":{${fill.members}"code":-32000,"message":"no"}}`,
  tools: (fill, id) => list(id, fill.items),
  'tool members': (fill, id) => list(id, `{${fill.members}"name":"a","inputSchema":${SCHEMA}}`),
  schema: (fill, id) =>
    list(id, `{"name":"a","inputSchema":{"type":"object","x":"\\u0078","properties":${fill.value}}}`),
  'output schema': (fill, id) =>
    list(id, `{"name":"a","inputSchema":${SCHEMA},"outputSchema":{"type":"array","items":${fill.value}}}`),
  annotations: (fill, id) =>
    list(
      id,
      `{"name":"a","inputSchema":{"type":"object","properties":{${fill.members}"a":{"type":"string","x-mcp-header":"A"}}}}`,
    ),
  // Notifications, each followed by the answer.
  progress: (fill, id, token) => note('progress', `"progressToken":${token},${fill.members}"progress":1`) + plain(id),
  'progress at the end': (fill, id, token) =>
    note('progress', `${fill.members}"progressToken":${token},"progress":1`) + plain(id),
  log: (fill, id) => note('message', `${fill.members}"level":"error","data":1`) + plain(id),
  updated: (fill, id) => note('resources/updated', `${fill.members}"uri":"a:b"`) + plain(id),
  unknown: (fill, id) => note('unheard-of', `${fill.members}"a":1`) + plain(id),
  cancelled: (fill, id) => note('cancelled', `${fill.members}"requestId":77`) + plain(id),
  'elicitation done': (fill, id) => note('elicitation/complete', `${fill.members}"elicitationId":"e"`) + plain(id),
  ping: (fill, id) => `{"jsonrpc":"2.0","id":"p","method":"ping","params":{${fill.members}"a":1}}\n${plain(id)}`,
  'input required': (fill, id) =>
    `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","requestState":"s","inputRequests":{${fill.members}"a":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}}}}`,
  'input params': (fill, id) =>
    `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"elicitation/create","params":{${fill.members}"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}}}}`,
  question: (fill, id) =>
    `{"jsonrpc":"2.0","id":"q${id}","method":"elicitation/create","params":{${fill.members}"message":"m","requestedSchema":{"type":"object","properties":{}}}}\n${plain(id)}`,
  sampling: (fill, id) =>
    `{"jsonrpc":"2.0","id":"q${id}","method":"sampling/createMessage","params":{"messages":[${fill.items}],"maxTokens":1}}\n${plain(id)}`,
  discover: (fill, id) => discovered(id, fill.members),
};

const result = (id, members) => `{"jsonrpc":"2.0","id":${id},"result":{${COMPLETE}${members}}}`;
const list = (id, tools) => result(id, `${HINTS}"tools":[${tools}]`);
const plain = (id) => result(id, CONTENT);
const note = (name, params) => `{"jsonrpc":"2.0","method":"notifications/${name}","params":{${params}}}\n`;
const discovered = (id, more) =>
  result(id, `${more}"supportedVersions":["2026-07-28"],${HINTS}"capabilities":{"tools":{},"logging":{}},${META_INFO}`);

/** Messages, one a line, that answer this one. */
function answer(bytes) {
  const head = bytes.toString('latin1', 0, 300);
  const ends = head + bytes.toString('latin1', Math.max(300, bytes.length - 300));
  const [, id] = /"id":("[^"]*"|\d+)/.exec(ends) ?? [];
  const [, method] = /"method":"([^"]*)"/.exec(ends) ?? [];
  if (id === undefined || method === undefined) return '';
  if (method === 'initialize' && !isModern) {
    const [, revision] = /"protocolVersion":"([^"]*)"/.exec(ends) ?? [];
    return `{"jsonrpc":"2.0","id":${id},"result":{"protocolVersion":"${revision}","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":${JSON.stringify(INFO)}}}`;
  }
  if (method === 'server/discover' && isModern) return discovered(id, '');
  const [, place, filling, size] = /"(?:name|cursor)":"([a-z ]+)\/([^/"]+)\/(\d+)"/.exec(head) ?? [];
  const [, token = '0'] = /"progressToken":("[^"]*"|\d+)/.exec(ends) ?? [];
  const make = PLACES[place];
  if (make !== undefined) {
    const fill = { value: makeValue(filling, Number(size)), members: makeMembers(filling, Number(size)) };
    fill.items = /^\[/.test(fill.value) ? fill.value.slice(1, -1) : `{"type":"x","x":${fill.value}}`;
    return make(fill, id, token);
  }
  if (method === 'tools/list') return list(id, TOOL);
  if (method === 'initialize' || method === 'server/discover')
    return `{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,"message":"Method not found"}}`;
  return plain(id);
}

if (port === undefined) {
  process.stdin.on(
    'data',
    createLineSplitter((line) => {
      const text = answer(line);
      if (text !== '') process.stdout.write(`${text}\n`);
    }),
  );
  process.stdin.on('end', () => process.exit(0));
} else {
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const text = answer(body);
      if (text === '') return response.writeHead(202).end();
      const session = isModern ? {} : { 'mcp-session-id': 's' };
      const messages = text.split('\n');
      if (messages.length === 1)
        return response.writeHead(200, { 'content-type': 'application/json', ...session }).end(text);
      response.writeHead(200, { 'content-type': 'text/event-stream', ...session });
      response.end(messages.map((message) => `data: ${message}\n\n`).join(''));
    });
  });
  server.listen(Number(port), '127.0.0.1');
}
