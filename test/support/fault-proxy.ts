import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { resetSocket } from './reset-socket.ts';
import { waitFor } from './wait-for.ts';

/** More than the messages that tests look for. */
const MAX_SAID_LENGTH = 10_000;

/**
 * What happens to what the server says.
 * - `none`: it passes.
 * - `delay`: each piece comes so much later.
 * - `truncate`: everything up to `keep` bytes after the first `marker` passes; then the connection ends regularly (`end`)
 *   or is reset. Once.
 * - `silence`: nothing passes anymore, and nobody is told.
 * - `refuse`: connections are reset as soon as something is said on them, so that nobody can tell what became of it.
 */
export type Fault =
  | { readonly kind: 'none' | 'silence' | 'refuse' }
  | { readonly kind: 'delay'; readonly ms: number }
  | {
      readonly kind: 'truncate';
      readonly marker: string | Buffer;
      readonly keep: number;
      readonly by: 'end' | 'reset';
    };

/** A network between bridge and server that fails in a way that can be chosen. */
export interface FaultProxy {
  /** The same endpoint, reached through the proxy. */
  through(url: URL): URL;
  fault: Fault;
  /** Connections that are open now, both ways counted. */
  readonly open: number;
  /** Resets all of them. Before it resolves, a call may still be sent on one of them. */
  reset(): Promise<void>;
  /** Something with this text goes to the server, from now on or since the last look: resets the connection it took. */
  passed(text: string): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1 and passes bytes on to the host and port of `target`. */
export async function startFaultProxy(target: URL): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  /** What clients have said lately. */
  const said = new Map<Socket, string>();
  const server = createServer((client) => {
    track(client);
    if (proxy.fault.kind === 'refuse') return void client.once('data', () => resetSocket(client));
    const upstream = track(dial(Number(target.port), target.hostname));
    client.pipe(upstream);
    client.on('data', (chunk: Buffer) => {
      said.set(client, `${said.get(client) ?? ''}${chunk.toString('latin1')}`.slice(-MAX_SAID_LENGTH));
    });
    upstream.on('data', (chunk) => {
      passBack(client, chunk);
      if (!client.writableNeedDrain) return;
      upstream.pause();
      client.once('drain', () => upstream.resume());
    });
    // The end comes after what was said before it, and no sooner.
    upstream.on('end', () => passEndBack(client));
    client.on('close', () => {
      said.delete(client);
      upstream.destroy();
    });
    upstream.on('close', () => passEndBack(client));
  });
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => void sockets.delete(socket));
  };
  const passEndBack = (client: Socket): void => {
    const { fault } = proxy;
    if (fault.kind === 'delay') setTimeout(() => client.destroySoon(), fault.ms);
    else if (fault.kind !== 'silence') client.destroySoon();
  };
  const passBack = (client: Socket, chunk: Buffer): void => {
    const { fault } = proxy;
    switch (fault.kind) {
      case 'silence':
        return;
      case 'delay':
        setTimeout(() => client.write(chunk), fault.ms);
        return;
      case 'truncate': {
        const at = chunk.indexOf(fault.marker);
        if (at === -1) break;
        proxy.fault = { kind: 'none' };
        return cutOff(client, chunk.subarray(0, at + fault.keep), fault.by);
      }
      default:
    }
    client.write(chunk);
  };
  const proxy: FaultProxy = {
    through: (url) => Object.assign(new URL(url), { host: `127.0.0.1:${port}` }),
    fault: { kind: 'none' },
    get open() {
      return sockets.size;
    },
    async reset() {
      await Promise.all([...sockets].map(resetSocket));
    },
    async passed(text) {
      const speaker = await waitFor(() => [...said].find(([, words]) => words.includes(text))?.[0], {
        message: `${text} to pass`,
      });
      said.clear();
      return () => resetSocket(speaker);
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await proxy.reset();
      await closed;
    },
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return proxy;
}

/** What was let through arrives before the connection is lost: a reset overtakes what has not been read. */
function cutOff(client: Socket, last: Buffer, by: 'end' | 'reset'): void {
  if (by === 'end') return void client.end(last);
  client.write(last, () => setTimeout(() => resetSocket(client), 50));
}
