/** Event streams as we write them. [spec WHATWG HTML server-sent events] */

import { LF } from './ascii.ts';

export interface EventFields {
  /** Event type; left out it means `message`. Must be one line. */
  readonly event?: string | undefined;
  /** Must be one line without NUL. */
  readonly id?: string | undefined;
  /** One line, as every Frame's bytes are. */
  readonly data: Buffer;
}

/** One event, in one buffer. */
export function encodeEvent({ event, id, data }: EventFields): Buffer {
  const eventField = event === undefined ? '' : `event: ${event}\n`;
  const idField = id === undefined ? '' : `id: ${id}\n`;
  const head = `${eventField}${idField}data: `;
  const headLength = Buffer.byteLength(head, 'utf8');
  const end = headLength + data.length;
  const bytes = Buffer.allocUnsafe(end + 2);
  bytes.write(head, 0, 'utf8');
  bytes.set(data, headLength);
  bytes[end] = LF;
  bytes[end + 1] = LF;
  return bytes;
}

/** A comment, which clients skip: keeps a silent connection alive. Must be one line. */
export function encodeComment(text: string): Buffer {
  return Buffer.from(`: ${text}\n\n`);
}

/** Tells the client how long to wait before it reconnects. */
export function encodeRetry(ms: number): Buffer {
  return Buffer.from(`retry: ${ms}\n\n`);
}

/**
 * An event with an id and empty data, so that the client can resume before the first message came.
 * [spec 2025-11-25 transports#sending-messages-to-the-server]
 */
export function encodePriming(id: string, retryMs?: number): Buffer {
  const retryField = retryMs === undefined ? '' : `retry: ${retryMs}\n`;
  return Buffer.from(`id: ${id}\n${retryField}data:\n\n`);
}
