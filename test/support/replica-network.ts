import { createServer, connect as dial, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { Owner } from '../../src/replicas/ownership/owner-tags.ts';
import { listen } from './linked-replicas.ts';

/** A network between two replicas of which a test sees everything. */
export interface ReplicaNetwork {
  /** The owner, reached through it. */
  readonly owner: Owner;
  /** What the first replica has sent after the upgrade. */
  readonly recorded: readonly Buffer[];
  /** Loses nothing and ends nothing, but passes nothing on anymore. */
  stop(): void;
}

/** @param change what it does with each piece that the first replica sends after the upgrade */
export async function startReplicaNetwork(
  t: ExecutionContext,
  owner: Owner,
  change = (bytes: Buffer): Buffer => bytes,
): Promise<ReplicaNetwork> {
  const recorded: Buffer[] = [];
  const connections: Socket[] = [];
  const server = createServer((entry) => {
    const upstream = dial(Number(new URL(owner.address).port), '127.0.0.1');
    connections.push(entry, upstream);
    let isUpgraded = false;
    upstream.on('data', (bytes: Buffer) => {
      isUpgraded = true;
      entry.write(bytes);
    });
    entry.on('data', (bytes: Buffer) => {
      if (isUpgraded) recorded.push(bytes);
      upstream.write(isUpgraded ? change(bytes) : bytes);
    });
    entry.on('error', () => undefined).on('close', () => upstream.destroy());
    upstream.on('error', () => undefined).on('close', () => entry.destroy());
  });
  const { port } = await listen(t, server);
  const stop = (): void => {
    for (const connection of connections) connection.pause();
  };
  return { owner: { ...owner, address: `http://127.0.0.1:${port}` }, recorded, stop };
}
