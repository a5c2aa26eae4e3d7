/** Writes event streams. [spec WHATWG HTML server-sent events] */

import { LF } from './json/ascii.ts';

export interface EventFields {
  /** Event type; `message` if left out. Must be one line. */
  readonly event?: string | undefined;
  /** Must be one line without NUL. */
  readonly id?: string | undefined;
  /** Must be one line, like the bytes of every Frame. */
  readonly data: Buffer;
}

/** Encodes an event into one buffer. */
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

/**
 * `event: message` is the default and could be left out, but @ai-sdk/mcp before 1.0.51 skips events without an explicit
 * type and then waits forever.
 */
const MESSAGE_DATA = Buffer.from('event: message\ndata: ');
const NUMBERED_DATA = Buffer.from('\ndata: ');

/** Encodes events of the type `message` without ids into one buffer. */
export function encodeEvents(data: readonly Buffer[]): Buffer {
  const bytes = Buffer.allocUnsafe(lengthOf(data) + data.length * (MESSAGE_DATA.length + 2));
  let at = 0;
  for (const line of data) {
    at = putShort(bytes, at, MESSAGE_DATA);
    at = putLine(bytes, at, line);
  }
  return bytes;
}

/** Encodes events of the type `message` into one buffer. Their ids are the prefix, in ASCII, followed by a counter. */
export function encodeNumberedEvents(idPrefix: string, first: number, data: readonly Buffer[]): Buffer {
  const head = Buffer.from(`event: message\nid: ${idPrefix}`, 'latin1');
  const longestNumber = String(first + data.length - 1).length;
  const fieldsLength = head.length + longestNumber + NUMBERED_DATA.length + 2;
  const bytes = Buffer.allocUnsafe(lengthOf(data) + data.length * fieldsLength);
  let at = 0;
  let number = first;
  for (const line of data) {
    at = putShort(bytes, at, head);
    at = putNumber(bytes, at, number);
    at = putShort(bytes, at, NUMBERED_DATA);
    at = putLine(bytes, at, line);
    number += 1;
  }
  return bytes.subarray(0, at);
}

function lengthOf(data: readonly Buffer[]): number {
  let length = 0;
  for (const line of data) length += line.length;
  return length;
}

/** A loop over a few bytes is faster than a call into native code. */
function putShort(bytes: Buffer, start: number, text: Buffer): number {
  for (let index = 0; index < text.length; index++) bytes[start + index] = text[index] as number; // index < length
  return start + text.length;
}

function putNumber(bytes: Buffer, start: number, number: number): number {
  const digits = String(number);
  for (let index = 0; index < digits.length; index++) bytes[start + index] = digits.charCodeAt(index);
  return start + digits.length;
}

function putLine(bytes: Buffer, start: number, line: Buffer): number {
  bytes.set(line, start);
  const end = start + line.length;
  bytes[end] = LF;
  bytes[end + 1] = LF;
  return end + 2;
}

/**
 * Returns the offset after the first `count` encoded events. An event contains no empty line, so each ends at the next
 * one.
 */
export function skipEvents(events: Buffer, count: number): number {
  let at = 0;
  for (let skipped = 0; skipped < count; skipped++) at = events.indexOf('\n\n', at) + 2;
  return at;
}

/** Encodes a comment, which clients ignore and which keeps an idle connection open. Must be one line. */
export function encodeComment(text: string): Buffer {
  return Buffer.from(`: ${text}\n\n`);
}

/** Encodes the delay that a client should wait before it reconnects. */
export function encodeRetry(ms: number): Buffer {
  return Buffer.from(`retry: ${ms}\n\n`);
}

/**
 * Encodes an event with an id and empty data, so that the client can resume even before the first message. [spec
 * 2025-11-25 transports#sending-messages-to-the-server]
 */
export function encodePriming(id: string, retryMs?: number): Buffer {
  const retryField = retryMs === undefined ? '' : `retry: ${retryMs}\n`;
  return Buffer.from(`id: ${id}\n${retryField}data:\n\n`);
}
