/**
 * A client that is killed: `doomed-client.ts <name in clients.ts> <URL of the bridge, or words for mcp-portage connect…>`.
 * Says `calling` on stdout when a call is under way, and then waits for its end. The log of a bridge that it starts goes to
 * its own stderr, which that bridge still has when the client is dead.
 */
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName, type Endpoint, endpointAt } from './clients.ts';

const [name = '', ...words] = process.argv.slice(2);
const kind: ClientKind = CLIENTS[name as ClientName];
const endpoint: Endpoint =
  kind.over === 'stdio'
    ? { kind: 'command', command: [...BRIDGE_COMMAND, 'connect', '--log-format', 'json', ...words], stderr: 'inherit' }
    : endpointAt(words[0] ?? '');

async function call(): Promise<void> {
  const client = await kind.connect(endpoint, { name: 'doomed' });
  void client.callTool('wait', { label: 'to the end' });
  await seenByServer(client, 'the call', ({ value }) => JSON.stringify(value ?? '').includes('to the end'));
  console.log('calling');
}

void call();
