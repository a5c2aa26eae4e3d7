import type { Server } from 'node:net';
import type { BridgeError } from '../../errors.ts';

/** A host and port, the path of a local socket, or an open file descriptor to listen on. */
export type ListenTarget =
  | { readonly host: string; readonly port: number }
  | { readonly path: string }
  | { readonly fd: number };

/** @param explain converts an error of the system to the one that is thrown */
export function begin(
  server: Server,
  target: ListenTarget,
  explain: (error: NodeJS.ErrnoException) => BridgeError,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(explain(error));
    server.once('error', failed);
    server.listen(target, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
