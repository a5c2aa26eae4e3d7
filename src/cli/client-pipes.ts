import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

const STDOUT = 1;

/**
 * This process's own stdin and stdout as the pipes of a client. Node writes to a stdout that is a pipe synchronously: a
 * client that stops reading would stop the whole process, timers and signals included. So it is opened as a socket.
 */
export function openClientPipes(): { readonly input: Readable; readonly output: Writable } {
  const kind = fstatSync(STDOUT);
  const isPipe = kind.isFIFO() || kind.isSocket();
  return { input: process.stdin, output: isPipe ? new Socket({ fd: STDOUT, readable: false }) : process.stdout };
}
