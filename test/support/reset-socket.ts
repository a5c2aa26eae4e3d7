import type { Socket } from 'node:net';

/**
 * Resets a connection; one that is being ended already is only destroyed. Node refuses to reset such a one, takes it for
 * closed all the same, and then waits for it without end when the process exits.
 */
export function resetSocket(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
