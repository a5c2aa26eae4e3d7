import type { Socket } from 'node:net';

/**
 * Resets a connection; one that is being ended already is only destroyed. Node refuses to reset such a one, takes it for
 * closed all the same, and then waits for it without end when the process exits.
 *
 * Resolves when it is done: what the other end hears from then on, it hears after the reset.
 */
export function resetSocket(socket: Socket): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
  return closed;
}
