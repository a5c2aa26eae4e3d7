import { waitFor } from '../../support/wait-for.ts';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: { form: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

export interface Answer {
  readonly result?: {
    readonly requestState?: string;
    readonly inputRequests?: Readonly<Record<string, unknown>>;
    readonly taskId?: string;
    readonly status?: string;
    readonly content?: unknown;
  };
  readonly error?: { readonly data?: { readonly bridge?: { readonly reason?: string } } };
}

/** A modern client without an SDK around it: each request goes to the replica that is named. */
export async function post(
  port: number,
  method: string,
  params: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const named = params.name ?? params.taskId;
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: {
      ...headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Mcp-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof named === 'string' && { 'Mcp-Name': named }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 'a', method, params: { ...params, _meta: META } }),
  });
  const text = await response.text();
  const last = text.startsWith('{') ? text : (text.split('\n').findLast((line) => line.startsWith('data: {')) ?? '');
  return JSON.parse(last.replace(/^data: /, ''));
}

/** What another replica says of it, once it is known that its owner is gone. */
export function fromOther(...request: Parameters<typeof post>): Promise<Answer> {
  return waitFor(
    async () => {
      const answer = await post(...request);
      return answer.error?.data?.bridge?.reason !== 'ERR_CLUSTER_OWNER' && answer;
    },
    { message: 'the other replica to know that the owner is gone' },
  );
}

/** The same request again, with this name as the answer to all that was asked. */
export function answering({ result }: Answer, call: object, name: string): Readonly<Record<string, unknown>> {
  const { requestState, inputRequests = {} } = result ?? {};
  const answer = { action: 'accept', content: { name } };
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
  return { ...call, requestState, inputResponses };
}
