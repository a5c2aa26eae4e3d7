import { readRequestMetadata } from '../../src/mcp/classify/request-metadata.ts';
import { Call } from '../../src/relay/call.ts';
import type { CallDialer, UpstreamLink } from '../../src/relay/ports.ts';
import type { Message } from '../contract/relayed-client.ts';
import { dialCall } from '../support/dial-call.ts';
import { FakeLane, FakeServerListener } from '../support/fake-peers.ts';
import { clientFrame } from '../support/frames.ts';
import { waitFor } from '../support/wait-for.ts';

export interface ModernRequestOptions {
  readonly params?: object;
  readonly capabilities?: object;
  readonly principal?: string;
  /** Of the client's HTTP request, which pass to the server. */
  readonly headers?: Readonly<Record<string, string>>;
}

export const modernFrame = (id: number, method: string, { params = {}, capabilities = {} }: ModernRequestOptions) =>
  clientFrame({
    id,
    method,
    params: {
      ...params,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': capabilities,
        'io.modelcontextprotocol/clientInfo': { name: 'client', version: '1' },
      },
    },
  });

/** One request of a modern client, on a link of its own. */
export class ModernRequest {
  readonly listener = new FakeServerListener();
  readonly link: UpstreamLink;
  readonly #call: Call;

  constructor(dialer: CallDialer, method = 'tools/list', options: ModernRequestOptions = {}) {
    const frame = modernFrame(7, method, options);
    const metadata = readRequestMetadata(frame);
    if ('fault' in metadata) throw new Error(metadata.fault);
    const { principal = 'ada', headers } = options;
    this.#call = new Call(7, method, Object.assign(new FakeLane(), headers && { headers }), undefined, 0);
    this.link = dialCall(dialer, this.listener, { principal, metadata, headers: undefined });
    this.link.send(frame, this.#call);
  }

  /** The answer; throws what the link said in its place. */
  async answer(): Promise<Message> {
    const { received, faults, closedWith } = this.listener;
    const frame = await waitFor(
      () => {
        const failure = faults[0]?.error ?? closedWith[0];
        if (failure !== undefined) throw failure;
        return received.find((sent) => sent.frame.isResponse)?.frame;
      },
      { message: 'the answer' },
    );
    this.#call.settle();
    return frame.json() as Message;
  }
}

/** Names of the tools a modern client sees. */
export async function listTools(dialer: CallDialer, options?: ModernRequestOptions): Promise<readonly unknown[]> {
  const { result, error } = await new ModernRequest(dialer, 'tools/list', options).answer();
  if (result === undefined) throw new Error(JSON.stringify(error));
  return (result.tools as { readonly name: string }[]).map(({ name }) => name);
}
