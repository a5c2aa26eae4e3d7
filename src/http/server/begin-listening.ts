import type { Server } from 'node:net';
import type { BridgeError } from '../../errors.ts';

export type Place =
  | { readonly host: string; readonly port: number }
  | { readonly path: string }
  | { readonly fd: number };

/** @param explain what is said when that fails */
export function begin(
  server: Server,
  place: Place,
  explain: (error: NodeJS.ErrnoException) => BridgeError,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(explain(error));
    server.once('error', failed);
    server.listen(place, () => {
      server.off('error', failed);
      resolve();
    });
  });
}
