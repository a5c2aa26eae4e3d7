/** The format of event ids. [spec 2025-11-25 transports#resumability-and-redelivery] */
import type { JsonRpcId } from '../../wire/frame.ts';

/** The position of an event: the stream of the session, and the number of the event within that stream, from 1. */
export interface EventPosition {
  readonly stream: number;
  readonly sequence: number;
}

/** The content of the `Last-Event-ID` that a client sends when it reconnects. */
export interface NamedEvent extends EventPosition {
  /** Request whose answer the stream carries; undefined: the id names none. */
  readonly request: JsonRpcId | undefined;
}

/** Longer request ids are left out, since each event would repeat them. */
const MAX_REQUEST_LENGTH = 64;

/**
 * Returns the part of a stream's event ids that precedes the sequence: visible ASCII, unique in the session.
 * @param request named where another replica may be asked for the rest of the stream without knowing anything of it
 */
export function eventIdPrefix(stream: number, request?: JsonRpcId): string {
  const named = request === undefined ? '' : Buffer.from(JSON.stringify(request)).toString('base64url');
  return named === '' || named.length > MAX_REQUEST_LENGTH ? `${stream}-` : `${stream}.${named}-`;
}

/**
 * Stream and sequence have at most 14 digits, since stored positions have six bytes. The request part may hold a `-`;
 * the sequence after the last one is digits only.
 */
const EVENT_ID = /^(0|[1-9]\d{0,13})(?:\.([\w-]{1,64}))?-([1-9]\d{0,13})$/;

/**
 * Returns undefined for anything that is not an event id of this bridge. The request in it is unverified input of the
 * client.
 */
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
