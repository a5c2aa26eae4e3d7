import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';
import { ownPort } from './own-port.ts';
import { waitFor } from './wait-for.ts';

/** A redis-server of a test's own, on a port and in a folder of its own. */
export interface RedisServer {
  readonly port: number;
  readonly url: URL;
  kill(signal: NodeJS.Signals): void;
  /** Starts it again on the same port, without what it held. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A test runner that dies must not leave them behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Why there is none here; undefined: there is one. */
export const WHY_NO_REDIS = findProgram('redis-server') === undefined ? 'redis-server is not installed' : undefined;

/** @param settingsOf further settings of the one at this port, such as `--maxmemory` and its value */
export async function startRedis(
  settingsOf: readonly string[] | ((port: number) => readonly string[]) = [],
): Promise<RedisServer> {
  const port = await ownPort();
  const args = typeof settingsOf === 'function' ? settingsOf(port) : settingsOf;
  const folder = await mkdtemp(join(tmpdir(), 'portage-redis-'));
  const start = async () => {
    const settings = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      folder,
      '--save',
      '',
      '--appendonly',
      'no',
    ];
    const child = spawn('redis-server', [...settings, ...args], { stdio: 'ignore' });
    running.add(child);
    child.once('exit', () => running.delete(child));
    await waitFor(() => takesConnections(port), { message: 'redis-server to listen' });
    return child;
  };
  let child = await start();
  const end = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return {
    port,
    url: new URL(`redis://127.0.0.1:${port}`),
    kill: (signal) => void child.kill(signal),
    async restart() {
      await end();
      child = await start();
    },
    async stop() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    const settle = (isTaken: boolean) => {
      socket.destroy();
      resolve(isTaken);
    };
    socket.once('connect', () => settle(true)).once('error', () => settle(false));
  });
}
