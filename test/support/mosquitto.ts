import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './find-program.ts';
import { ownPort } from './own-port.ts';
import { waitFor } from './wait-for.ts';

/** A mosquitto of a test's own, on a port and in a folder of its own. */
export interface Mosquitto {
  readonly port: number;
  /** `mqtt://127.0.0.1:port` */
  readonly url: string;
  /** Ends it, and starts it again on the same port, without what it held. Default: with the settings it had. */
  restart(settings?: readonly string[]): Promise<void>;
  /** Ends it. `restart` starts it again. */
  end(): Promise<void>;
  stop(): Promise<void>;
}

/** A test runner that dies must not leave them behind. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Why there is none here; undefined: there is one. */
export const WHY_NO_MOSQUITTO = findProgram('mosquitto') === undefined ? 'mosquitto is not installed' : undefined;

export interface MosquittoOptions {
  /** Further lines of its configuration file; a function gets the folder of its files. */
  readonly settings?: readonly string[];
  /** Files beside the configuration, by name. Settings name them as `${folder}/<name>`. */
  readonly files?: Readonly<Record<string, string>>;
}

/** What the broker queues for a connection that is paused is not dropped, and no packet waits for others to be sent with. */
export const PATIENT_BROKER: MosquittoOptions = {
  settings: ['allow_anonymous true', 'max_queued_messages 0', 'set_tcp_nodelay true'],
};

export async function startMosquitto({
  settings = ['allow_anonymous true'],
  files = {},
}: MosquittoOptions = {}): Promise<Mosquitto> {
  const port = await ownPort();
  const folder = await mkdtemp(join(tmpdir(), 'portage-mosquitto-'));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
  // Started as root, it becomes another user, who cannot read the folder.
  const user = process.getuid?.() === 0 ? ['user root'] : [];
  const file = join(folder, 'mosquitto.conf');
  const configure = (lines: readonly string[]): Promise<void> => {
    const written = lines.map((line) => line.replaceAll(FOLDER, folder));
    return writeFile(file, [...user, `listener ${port} 127.0.0.1`, ...written, ''].join('\n'));
  };
  await configure(settings);
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(findProgram('mosquitto') ?? 'mosquitto', ['-c', file], { stdio: 'ignore' });
    running.add(child);
    child.once('exit', () => running.delete(child));
    await waitFor(() => takesConnections(port), { message: 'mosquitto to listen' });
    return child;
  };
  let child = await start();
  const end = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  return {
    port,
    url: `mqtt://127.0.0.1:${port}`,
    end,
    async restart(others) {
      await end();
      if (others !== undefined) await configure(others);
      child = await start();
    },
    async stop() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Stands for the folder of a broker's files in its settings. */
export const FOLDER = '<folder>';

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
