import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';

/** A message as the recorder server got it. */
export interface RecordedMessage {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>> & { readonly _meta?: Readonly<Record<string, unknown>> };
  readonly result?: unknown;
  readonly error?: unknown;
}

type RequestOptions = Parameters<Client['request']>[2];

/** Calls one of the recorder's `test/…` methods. */
export async function ask(
  client: Client,
  method: string,
  params: Record<string, unknown> = {},
  options?: RequestOptions,
): Promise<Record<string, unknown>> {
  return client.request({ method, params }, ResultSchema, options);
}

/** Everything the recorder behind this client has received. */
export async function received(client: Client): Promise<RecordedMessage[]> {
  const { messages } = await ask(client, 'test/received');
  return messages as RecordedMessage[];
}
