import type { Server } from 'node:net';
import type { BridgeError } from '../../errors.ts';

/** What a server can be told to listen at. */
export type ListenTarget =
  | { readonly host: string; readonly port: number }
  | { readonly path: string }
  | { readonly fd: number };

/** @param explain what is said when that fails */
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
