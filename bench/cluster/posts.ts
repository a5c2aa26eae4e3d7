/** What the bench sends to replicas, over Streamable HTTP on connections that are kept. Every answer is checked. */
import { Agent, type IncomingMessage, request } from 'node:http';

const agent = new Agent({ keepAlive: true });
/** Sessions that are being opened at a time. */
const AT_ONCE = 8;
const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const META = 'io.modelcontextprotocol/';
const ENVELOPE = {
  [`${META}protocolVersion`]: MODERN,
  [`${META}clientCapabilities`]: {},
  [`${META}clientInfo`]: { name: 'bench', version: '1' },
};

/** A call that is made again and again. */
export interface Call {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly era: 'legacy' | 'modern';
  /** What its answer has to contain. */
  readonly answered: string;
}

interface Answer {
  readonly status: number;
  readonly sessionId: string | undefined;
  readonly text: string;
}

type Headers = Readonly<Record<string, string>>;

function post(port: number, message: object, more: Headers): Promise<Answer> {
  const body = JSON.stringify({ jsonrpc: '2.0', ...message });
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'Content-Length': Buffer.byteLength(body),
    ...more,
  };
  return new Promise((resolve, reject) => {
    request({ agent, port, host: '127.0.0.1', path: '/mcp', method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        const id = response.headers['mcp-session-id'];
        resolve({ status: response.statusCode ?? 0, sessionId: typeof id === 'string' ? id : undefined, text });
      });
    })
      .on('error', reject)
      .end(body);
  });
}

/** The id of a new session. */
export async function openSession(port: number): Promise<string> {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const { sessionId, text } = await post(port, { id: 0, method: 'initialize', params }, {});
  if (sessionId === undefined) throw new Error(`no session: ${text}`);
  await post(port, { method: 'notifications/initialized' }, { 'Mcp-Session-Id': sessionId });
  return sessionId;
}

/** Opens so many sessions, some at a time. */
export async function openSessions(port: number, count: number): Promise<readonly string[]> {
  const opened: string[] = [];
  let left = count;
  const openNext = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      opened.push(await openSession(port));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, openNext));
  return opened;
}

/** Opens the stream of a session on which the server may say something, and leaves it open. Returns what closes it. */
export function openStream(port: number, sessionId: string): Promise<() => void> {
  const headers = { Accept: 'text/event-stream', 'Mcp-Session-Id': sessionId };
  return new Promise((resolve, reject) => {
    const sent = request({ agent: false, port, host: '127.0.0.1', path: '/mcp', headers }, (head: IncomingMessage) => {
      if (head.statusCode !== 200) return reject(new Error(`no stream: ${head.statusCode}`));
      head.on('error', () => undefined).resume();
      resolve(() => sent.destroy());
    });
    sent.on('error', reject).end();
  });
}

/** Makes a call once. */
export async function callOnce(port: number, session: string, call: Call, id: number): Promise<void> {
  const { method, params, era, answered } = call;
  const name = typeof params?.name === 'string' ? { 'Mcp-Name': params.name } : {};
  const headers: Headers =
    era === 'modern'
      ? { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...name }
      : { 'MCP-Protocol-Version': LEGACY, 'Mcp-Session-Id': session };
  const meta = { progressToken: id, ...(era === 'modern' && ENVELOPE) };
  const { status, text } = await post(port, { id, method, params: { ...params, _meta: meta } }, headers);
  if (status !== 200 || !text.includes(answered)) throw new Error(`${method} was answered ${status}: ${text}`);
}

/** Makes so many calls, as many at a time as there are sessions. */
export async function callMany(port: number, sessions: readonly string[], call: Call, count: number): Promise<void> {
  await Promise.all(
    sessions.map(async (session, index) => {
      for (let id = index; id < count; id += sessions.length) await callOnce(port, session, call, id);
    }),
  );
}

export function closeConnections(): void {
  agent.destroy();
}
