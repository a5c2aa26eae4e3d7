/** What the ids of events say. [spec 2025-11-25 transports#resumability-and-redelivery] */
import type { JsonRpcId } from '../../wire/frame.ts';

/** The position of an event: the stream of the session, and the number of the event within that stream, from 1. */
export interface EventPosition {
  readonly stream: number;
  readonly sequence: number;
}

/** What a client names when it comes back. */
export interface NamedEvent extends EventPosition {
  /** Whose answer comes on the stream; undefined: the id does not say. */
  readonly request: JsonRpcId | undefined;
}

/** Longer ids of requests are left out: they would be repeated with each event. */
const MAX_REQUEST_LENGTH = 64;

/**
 * What stands before the sequence in the ids of a stream: visible ASCII, unique in the session.
 * @param request is named where another bridge may be asked for the rest of the stream, and may know nothing of it
 */
export function eventIdPrefix(stream: number, request?: JsonRpcId): string {
  const named = request === undefined ? '' : Buffer.from(JSON.stringify(request)).toString('base64url');
  return named === '' || named.length > MAX_REQUEST_LENGTH ? `${stream}-` : `${stream}.${named}-`;
}

/**
 * A client may go on from any of them, and stored positions have six bytes. The part of the request may hold the sign before
 * the sequence, which itself is digits only.
 */
const EVENT_ID = /^(0|[1-9]\d{0,13})(?:\.([\w-]{1,64}))?-([1-9]\d{0,13})$/;

/** Undefined for everything that is no id of an event here. What it says of the request is as the client has it. */
export function parseEventId(id: string): NamedEvent | undefined {
  const match = EVENT_ID.exec(id);
  if (match === null) return undefined;
  const [, stream, named, sequence] = match;
  return { stream: Number(stream), sequence: Number(sequence), request: readRequest(named) };
}

function readRequest(named: string | undefined): JsonRpcId | undefined {
  if (named === undefined) return undefined;
  try {
    const id: unknown = JSON.parse(Buffer.from(named, 'base64url').toString());
    return typeof id === 'string' || Number.isFinite(id) ? (id as JsonRpcId) : undefined;
  } catch {
    return undefined;
  }
}
