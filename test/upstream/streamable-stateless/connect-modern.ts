import test, { type ExecutionContext } from 'ava';
import type { UpstreamDialer } from '../../../src/relay/ports.ts';
import { ModernClient, type ModernClientOptions } from '../../contract/modern-client.ts';
import {
  type Act,
  type AskedMessage,
  listenScripted,
  type Script,
  type ScriptedServer,
} from '../../fixtures/http-servers/scripted.ts';
import { type DialOptions, dialStateless } from '../remote-dialers.ts';

export type ConnectOptions = DialOptions & ModernClientOptions;

export interface Connection {
  readonly server: ScriptedServer;
  readonly dialer: UpstreamDialer;
  readonly client: ModernClient;
  /** Another client of the same server. */
  connect(options?: ModernClientOptions): ModernClient;
}

const COME_ALONE = 'requests that come alone: ';

/** A test with a client that has a link, and with one whose requests come alone, as over HTTP. */
export function testBothWays(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  test(title, run);
  test(`${COME_ALONE}${title}`, run);
}

/** A modern client of a server that does as the script says; everything is closed when the test is over. */
export async function connectScripted(
  t: ExecutionContext,
  script: Script,
  options: ConnectOptions = {},
): Promise<Connection> {
  const server = await listenScripted(script);
  const dialer = dialStateless(server.url, options);
  const clients: ModernClient[] = [];
  const comesAlone = t.title.startsWith(COME_ALONE);
  const connect = (clientOptions: ModernClientOptions = options): ModernClient => {
    const client = new ModernClient(dialer, { comesAlone, ...clientOptions });
    clients.push(client);
    return client;
  };
  t.teardown(async () => {
    for (const client of clients) client.close();
    await dialer.close();
    await server.close();
  });
  return { server, dialer, client: connect(), connect };
}

/** A JSON-RPC error under an HTTP status. */
export const refuseWith =
  (status: number, code: number, data?: object): Act =>
  ({ message }, response) =>
    void response
      .writeHead(status, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code, message: 'not like this', data } }));

/** What was asked with this method, in order. */
export function askedFor({ messages }: ScriptedServer, method: string): readonly AskedMessage[] {
  return messages.filter(({ message }) => message.method === method);
}
