/** A session without an SDK around it, each of whose requests goes to the replica that a test names. */
export interface RawSession {
  readonly headers: Readonly<Record<string, string>>;
  /** Posts a message, or several as a batch; `jsonrpc` is added to each. */
  send(port: number, message: object | readonly object[]): Promise<Response>;
  /** Comes back for what followed this event on its stream. */
  resume(port: number, lastEventId: string): Promise<Response>;
  /** Sends a request with an id of its own. */
  post(port: number, method: string, params?: object): Promise<{ readonly status: number; readonly text: string }>;
  /** The text of a response with a result; undefined: it had none. */
  answered(port: number, method: string): Promise<string | undefined>;
}

export interface RawSessionOptions {
  readonly path?: string;
  readonly capabilities?: object;
  readonly revision?: string;
}

export async function openSession(port: number, options: RawSessionOptions = {}): Promise<RawSession> {
  const { path = '/mcp', capabilities = {}, revision = '2025-11-25' } = options;
  const common = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const sendWith = (headers: Readonly<Record<string, string>>, at: number, said: object): Promise<Response> => {
    const add = (message: object): object => ({ jsonrpc: '2.0', ...message });
    const body = JSON.stringify(Array.isArray(said) ? said.map(add) : add(said));
    return fetch(`http://127.0.0.1:${at}${path}`, { method: 'POST', headers, body });
  };
  const params = { protocolVersion: revision, capabilities, clientInfo: { name: 'raw', version: '1' } };
  const opened = await sendWith(common, port, { id: 'open', method: 'initialize', params });
  await opened.text();
  const id = opened.headers.get('mcp-session-id');
  if (id === null) throw new Error('there was to be a session');
  const headers = { ...common, 'Mcp-Session-Id': id, 'Mcp-Protocol-Version': revision };
  const send = (at: number, message: object): Promise<Response> => sendWith(headers, at, message);
  await (await send(port, { method: 'notifications/initialized' })).text();
  let last = 0;
  const post: RawSession['post'] = async (at, method, withParams) => {
    const response = await send(at, { id: `${last++}`, method, ...(withParams && { params: withParams }) });
    return { status: response.status, text: await response.text() };
  };
  return {
    headers,
    send,
    resume: (at, lastEventId) =>
      fetch(`http://127.0.0.1:${at}${path}`, {
        headers: { ...headers, Accept: 'text/event-stream', 'Last-Event-ID': lastEventId },
      }),
    post,
    async answered(at, method) {
      const { status, text } = await post(at, method);
      return status === 200 && text.includes('"result"') ? text : undefined;
    },
  };
}
