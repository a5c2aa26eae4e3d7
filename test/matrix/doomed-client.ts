/**
 * A client that is killed: `doomed-client.ts stdio <words for mcp-portage connect…>`, or `… streamable <url>`, or
 * `… httpSse <url>`. Says `calling` on stdout when a call is under way, and then waits for its end.
 */
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { seenByServer } from './cell.ts';
import type { ClientName } from './clients.ts';
import { LegacyClient } from './legacy-client.ts';

const [kind = '', ...words] = process.argv.slice(2);
const [url = ''] = words;
const [command, ...args] = BRIDGE_COMMAND;

const TRANSPORTS: Readonly<Record<ClientName, () => object>> = {
  stdio: () => new StdioClientTransport({ command, args: [...args, 'connect', ...words], stderr: 'ignore' }),
  httpSse: () => new SSEClientTransport(new URL(url)),
  streamable: () => new StreamableHTTPClientTransport(new URL(url)),
};

const client = await LegacyClient.connect(TRANSPORTS[kind as ClientName](), { name: 'doomed' });
void client.callTool('wait', { label: 'to the end' });
await seenByServer(client, 'the call', ({ value }) => JSON.stringify(value ?? '').includes('to the end'));
console.log('calling');
