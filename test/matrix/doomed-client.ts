/**
 * A client that is killed: `doomed-client.ts <name in clients.ts> <URL of the bridge, or words for mcp-portage connect…>`.
 * Says `calling` on stdout when a call is under way, and then waits for its end.
 */
import { BRIDGE_COMMAND } from '../support/bridge.ts';
import { seenByServer } from './cell.ts';
import { CLIENTS, type ClientKind, type ClientName, type Door } from './clients.ts';

const [name = '', ...words] = process.argv.slice(2);
const kind: ClientKind = CLIENTS[name as ClientName];
const door: Door =
  kind.over === 'stdio'
    ? { kind: 'command', command: [...BRIDGE_COMMAND, 'connect', ...words] }
    : { kind: 'url', url: new URL(words[0] ?? '') };

const client = await kind.connect(door, { name: 'doomed' });
void client.callTool('wait', { label: 'to the end' });
await seenByServer(client, 'the call', ({ value }) => JSON.stringify(value ?? '').includes('to the end'));
console.log('calling');
