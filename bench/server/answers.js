/**
 * What the MCP server behind every bridge says. It does as little as it can, so that the bridge is what is measured,
 * and checks nothing it is not asked to: a bridge that leaves the handshake out is answered, too.
 */
import { createHash } from 'node:crypto';

const MODERN_REVISION = '2026-07-28';
const SERVER_INFO = { name: 'bench', version: '1.0.0' };
const LIST_CACHE = { ttlMs: 3_600_000, cacheScope: 'public' };

const text = { type: 'string' };
const number = { type: 'number' };
const tool = (name, properties) => ({ name, description: name, inputSchema: { type: 'object', properties } });
const TOOLS = [
  tool('echo', { tag: text }),
  tool('produce', { tag: text, bytes: number }),
  tool('absorb', { tag: text, text }),
  tool('progress', { tag: text, count: number }),
];

/** Text as a file would have it: lines, so that newlines are escaped in JSON. It needs no other escape. */
const LINE = 'The quick brown fox jumps over the lazy dog, then it rests 0123.';
const fillers = new Map();

/** `bytes` of text as it stands inside a JSON string. */
export function filler(bytes) {
  let made = fillers.get(bytes);
  if (made === undefined) {
    made = Buffer.alloc(bytes, `${LINE}\\n`, 'latin1');
    // A cut escape would not be JSON.
    if (made[bytes - 1] === 0x5c) made[bytes - 1] = 0x2e;
    fillers.set(bytes, made);
  }
  return made;
}

/** The start of a text that is found in it again, whole and unchanged. */
export function fingerprint(content) {
  return `${content.length} ${createHash('sha1').update(content).digest('base64')}`;
}

/**
 * Answers one message; `emit` takes each message to send, without its newline. `era` is what the server is written for,
 * 'legacy' or 'modern'.
 */
export function answer(line, era, emit) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const complete = (result) => (era === 'modern' ? { ...result, resultType: 'complete' } : result);
  const reply = (result) => emit(JSON.stringify({ jsonrpc: '2.0', id, result: complete(result) }));
  const refuse = (code, message, data) => emit(JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } }));

  if (method === 'tools/call') return call({ id, params, era, emit, reply });
  if (method === 'ping') return reply({});
  if (method === 'tools/list') return reply({ tools: TOOLS, ...(era === 'modern' ? LIST_CACHE : {}) });
  if (method === 'initialize') {
    if (era === 'modern') {
      return refuse(-32022, 'Unsupported protocol version', {
        supported: [MODERN_REVISION],
        requested: params.protocolVersion,
      });
    }
    const { protocolVersion } = params;
    return reply({ protocolVersion, capabilities: { tools: {} }, serverInfo: SERVER_INFO });
  }
  if (method === 'server/discover' && era === 'modern') {
    return reply({
      supportedVersions: [MODERN_REVISION],
      capabilities: { tools: {} },
      _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO },
      ...LIST_CACHE,
    });
  }
  return refuse(-32601, 'Method not found');
}

function call({ id, params, era, emit, reply }) {
  const { name, arguments: given } = params;
  const tag = given.tag;
  if (name === 'produce') {
    const end = era === 'modern' ? '"}],"resultType":"complete"}}' : '"}]}}';
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"${tag}`;
    return emit(Buffer.concat([Buffer.from(head), filler(given.bytes), Buffer.from(end)]));
  }
  if (name === 'progress') {
    const token = JSON.stringify(params._meta.progressToken);
    const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":`;
    for (let progress = 1; progress <= given.count; progress += 1) emit(`${head}${progress},"total":${given.count}}}`);
  }
  const said = name === 'absorb' ? `${tag} ${fingerprint(given.text)}` : tag;
  reply({ content: [{ type: 'text', text: said }] });
}
