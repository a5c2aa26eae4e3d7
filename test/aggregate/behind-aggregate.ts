/** The aggregate between a client and a server of the matrix, with another server beside that one. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientName } from '../matrix/clients.ts';
import { CLIENTS } from '../matrix/clients.ts';
import { type Front, startFront } from '../matrix/fronts.ts';
import { ENVIRONMENT, NODE } from '../support/config-bridge.ts';

/** The entry of a file for what the command line would be given. */
function entryOf([first = '', command, ...args]: readonly string[]): object {
  return first === '--' ? { command, args } : { url: first };
}

/**
 * Starts the aggregate of two servers. The one that is tried comes second and has no prefix, so its client finds everything
 * under its own names.
 */
export async function startBehindAggregate(client: ClientName, target: readonly string[]): Promise<Front> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-portage-aggregate-'));
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  const file = join(folder, 'mcp.json');
  const servers = {
    beside: { command: NODE, args: [ENVIRONMENT] },
    tried: { ...entryOf(target), portage: { prefix: '' } },
  };
  try {
    await writeFile(file, JSON.stringify({ mcpServers: servers }));
    const options =
      CLIENTS[client].over === 'stdio' ? ['--config', file] : ['--config', file, '--aggregate', '--pool-size', '8'];
    const front = await startFront(client, options);
    return {
      ...front,
      connect: (given) => front.connect(given),
      processes: () => front.processes(),
      stop: () => front.stop().finally(removeFolder),
    };
  } catch (error) {
    await removeFolder();
    throw error;
  }
}
