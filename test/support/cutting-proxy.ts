import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { resetSocket } from './reset-socket.ts';

/** A network between client and bridge that can fail. */
export interface CuttingProxy {
  /** The same endpoint, reached through the proxy. */
  through(url: URL): URL;
  /** Breaks every connection that is open now; new ones are let through. Resolves when all are broken. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1 and passes bytes on to the host and port of `target`. */
export async function startCuttingProxy(target: URL): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => void sockets.delete(socket));
    return socket;
  };
  const server = createServer((client) => {
    const upstream = track(dial(Number(target.port), target.hostname));
    track(client).pipe(upstream).pipe(client);
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const cut = async () => {
    await Promise.all([...sockets].map(resetSocket));
  };
  return {
    through: (url) => Object.assign(new URL(url), { host: `127.0.0.1:${port}` }),
    cut,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await cut();
      await closed;
    },
  };
}
