/** A client that speaks on the stdin of `serve`, as it does where the name of a program was changed and nothing else. */
import { fstatSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import type { Logger } from 'pino';
import type { ServerConfig } from '../config/server.ts';
import { INVALID_REQUEST } from '../mcp/vocabulary/rpc-codes.ts';
import { showTarget } from '../probe/clients.ts';
import { Frame } from '../wire/frame.ts';
import { LineSplitter } from '../wire/ndjson.ts';
import { readMessage } from '../wire/read-message.ts';
import { errorFrame } from '../wire/write-message.ts';

/** Longer lines are read past: what a client begins with is far shorter. */
const MAX_LINE_BYTES = 1024 * 1024;
const LIMITS = { maxDepth: 100, maxBatch: 100, maxValues: 100_000 };

/** Is stdin what a client would hold the other end of? A terminal, a file and /dev/null are left alone. */
export function isPipe(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFIFO() || stats.isSocket();
  } catch {
    // It is closed.
    return false;
  }
}

export interface StrayClientOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly server: Pick<ServerConfig, 'listing' | 'target' | 'remote'>;
  readonly log: Logger;
}

/** Answers each request on stdin with an error that names the command to use. Nothing else is written there. */
export function answerStrayClient({ input, output, server, log }: StrayClientOptions): void {
  let hasWarned = false;
  const refuse = (request: Frame): void => {
    const message = `A client speaks on stdin, but mcp-portage serve serves clients over HTTP: use connect, as in ${connectCommand(server)}`;
    if (!hasWarned) log.warn(message);
    hasWarned = true;
    const { bytes } = errorFrame(request.id, { code: INVALID_REQUEST, message });
    if (output.write(`${bytes.toString()}\n`)) return;
    input.pause();
    output.once('drain', () => input.resume());
  };
  const line = (bytes: Buffer): void => {
    const read = readMessage(bytes, LIMITS);
    if (read.kind === 'fault') return;
    const items = read.kind === 'message' ? [read.frame] : read.items;
    for (const item of items) if (item instanceof Frame && item.kind === 'request') refuse(item);
  };
  const splitter = new LineSplitter({ line, oversized: () => {} }, MAX_LINE_BYTES);
  input.on('data', (chunk: Buffer) => splitter.push(chunk));
  // Who ends it, or breaks it, says nothing more; the servers go on.
  input.on('error', () => undefined);
}

function connectCommand({ listing, target, remote }: StrayClientOptions['server']): string {
  if (listing !== undefined) return `mcp-portage connect --config FILE ${listing.name}`;
  return `mcp-portage connect ${showTarget(target, remote)}`;
}
