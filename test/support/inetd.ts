import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { resetSocket } from './reset-socket.ts';

export interface Inetd {
  readonly port: number;
  /** How many connections were made in all. */
  readonly accepted: number;
  /** Ends the programs that run, with no word to them, and with them their connections. */
  kill(): Promise<void>;
  /** Resets the connections that are open. */
  cut(): Promise<void>;
  /** May be called twice. */
  stop(): Promise<void>;
}

export interface InetdOptions {
  /** 0 picks one. */
  readonly port?: number;
  /** A Unix socket in place of a port. */
  readonly path?: string;
}

/** Starts a program for each connection and joins the two, as inetd does: a server of stdio becomes one of a byte stream. */
export async function startInetd(
  [program = '', ...args]: readonly string[],
  { port = 0, path }: InetdOptions = {},
): Promise<Inetd> {
  const open = new Map<Socket, ChildProcess>();
  let accepted = 0;
  // A client that has ended its input still gets its answers.
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted += 1;
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    open.set(socket, child);
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
    for (const stream of [socket, child.stdin, child.stdout]) stream.on('error', () => undefined);
    socket.once('close', () => child.stdin.destroy());
    child.once('exit', () => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (path === undefined) server.listen(port, '127.0.0.1', resolve);
    else server.listen(path, resolve);
  });
  const kill = async (): Promise<void> => {
    await Promise.all(
      [...open.values()].map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, 'exit');
        child.kill('SIGKILL');
        await exited;
      }),
    );
  };
  return {
    port: path === undefined ? (server.address() as AddressInfo).port : 0,
    get accepted() {
      return accepted;
    },
    kill,
    cut: async () => void (await Promise.all([...open.keys()].map(resetSocket))),
    async stop() {
      server.close();
      const sockets = [...open.keys()];
      await kill();
      for (const socket of sockets) socket.destroy();
    },
  };
}
