/**
 * Answers a client that speaks on the stdin of `serve`, as happens where only the name of the program was changed in a
 * host's configuration.
 */
import type { Readable, Writable } from 'node:stream';
import type { Logger } from 'pino';
import { INVALID_REQUEST } from '../../mcp/vocabulary/rpc-codes.ts';
import { Frame } from '../../wire/frame.ts';
import { LineSplitter } from '../../wire/ndjson.ts';
import { readMessage } from '../../wire/read-message.ts';
import { errorFrame } from '../../wire/write-message.ts';

/** Longer lines are skipped: a client's first messages are far shorter. */
const MAX_STRAY_BYTES = 1024 * 1024;
const LIMITS = { maxDepth: 100, maxBatch: 100, maxValues: 100_000 };

export interface StrayClient {
  readonly input: Readable;
  readonly output: Writable;
  /** The `connect` command line that the client should have started. */
  readonly connectCommand: string;
}

/** Answers each request on stdin with an error that names the command to use. Nothing else is written to stdout. */
export function answerStrayClient({ input, output, connectCommand }: StrayClient, log: Logger): void {
  let hasWarned = false;
  const refuse = (request: Frame): void => {
    const message = `A client speaks on stdin, but mcp-portage serve serves clients over HTTP: use connect, as in ${connectCommand}`;
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
  const splitter = new LineSplitter({ line, oversized: () => {} }, MAX_STRAY_BYTES);
  input.on('data', (chunk: Buffer) => splitter.push(chunk));
  // A broken stdin only means that the client sends nothing more; the HTTP servers continue.
  input.on('error', () => undefined);
}
