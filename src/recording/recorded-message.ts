/**
 * One line of a recording: a message at one side of the bridge, as JSON Lines. The same lines are the events of a bridge's
 * live feed. docs/internals/decisions/0060-recordings.md says why the format is as it is.
 */
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { parseJson } from '../wire/json/parse-json.ts';

/** A message between client and bridge, or between bridge and server. */
export type RecordedSide = 'client' | 'server';

/** `in` is to the bridge, `out` is from the bridge. */
export type RecordedDirection = 'in' | 'out';

/** What a recording says of a message, beside the message itself. */
export interface MessageFacts {
  /** ISO 8601 in UTC, with milliseconds. */
  readonly at: string;
  /** Counts the lines of one run of a bridge, from 1. */
  readonly seq: number;
  readonly side: RecordedSide;
  readonly direction: RecordedDirection;
  /** The server's name, as in logs and in `/status.json`. */
  readonly server: string;
  /**
   * The client's own name, at most 256 characters. Undefined while it is not known, and on the server's side outside of
   * calls.
   */
  readonly client?: string | undefined;
  /** A short name such as `s1` or `c1`, never a real id. Undefined for a modern request that comes alone over HTTP. */
  readonly session?: string | undefined;
  /** The transport on that side. A reader takes any name, since later versions may have more. */
  readonly carrier: string;
  /** The era on that side. */
  readonly era: Era;
  /** The same number on every message of one call of a client, on both sides. Undefined outside of calls. */
  readonly call?: number | undefined;
  /** Bytes of the message as it was sent, without framing. */
  readonly bytes: number;
  /** Number of values hidden in the message. Undefined if there are none. */
  readonly hidden?: number | undefined;
  /** True if `params`, `result` or `error` is a string: the beginning of its JSON text. */
  readonly cut?: true | undefined;
}

export interface RecordedMessage extends MessageFacts {
  /** The JSON-RPC message. Its members are those of a peer, so their types are not certain. */
  readonly message: Readonly<Record<string, unknown>>;
}

/** Stands in place of a secret value, or of the secret part of a longer text. */
export const HIDDEN = '[hidden]';

/** What a recording says of all messages of one session or connection; a connection may carry the calls of several clients. */
export type MessageOrigin = Pick<MessageFacts, 'side' | 'server' | 'client' | 'session' | 'carrier' | 'era'>;

/** What differs between the messages of one session or connection. `client` is of the call, where the origin names none. */
type CallFacts = Omit<MessageFacts, Exclude<keyof MessageOrigin, 'client'> | 'direction'>;

/** The part of a line that says where its message passed, in one direction. It is the same for many lines. */
export function originText(origin: MessageOrigin, direction: RecordedDirection): string {
  const { side, server, client, session, carrier, era } = origin;
  return JSON.stringify({ side, direction, server, client, session, carrier, era }).slice(1, -1);
}

/**
 * Returns the line of a message, without its line break. Written by hand, since a bridge writes several lines for each
 * call.
 * @param origin the text of `originText`
 * @param message the JSON text of one object, on one line
 */
export function recordedLine(
  origin: string,
  { at, seq, call, client, bytes, hidden, cut }: CallFacts,
  message: string,
): string {
  const caller = client === undefined ? '' : `,"client":${JSON.stringify(client)}`;
  const ofCall = call === undefined ? caller : `${caller},"call":${call}`;
  const known = `{"at":"${at}","seq":${seq},${origin}${ofCall},"bytes":${bytes}`;
  const changed =
    hidden === undefined && cut === undefined
      ? ''
      : `${hidden === undefined ? '' : `,"hidden":${hidden}`}${cut === undefined ? '' : ',"cut":true'}`;
  return `${known}${changed},"message":${message}}`;
}

/** Why a line is not a recorded message, as the end of a sentence that begins with the place of the line. */
export interface DamagedLine {
  readonly damage: string;
}

/** Reads a line of a recording. Members that later versions may add are ignored. */
export function parseRecordedLine(line: string): RecordedMessage | DamagedLine {
  let value: unknown;
  try {
    value = parseJson(Buffer.from(line));
  } catch {
    return { damage: 'is not JSON' };
  }
  if (!isObject(value)) return { damage: 'is not an object' };
  const wrong = Object.keys(MEMBERS).find((name) => MEMBERS[name as keyof RecordedMessage](value[name]) === false);
  // Each member was checked.
  return wrong === undefined ? (value as unknown as RecordedMessage) : { damage: `has no valid "${wrong}"` };
}

const MEMBERS: Readonly<Record<keyof RecordedMessage, (value: unknown) => boolean>> = {
  at: (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)),
  seq: isCount,
  side: (value) => value === 'client' || value === 'server',
  direction: (value) => value === 'in' || value === 'out',
  server: isText,
  client: optional(isText),
  session: optional(isText),
  carrier: isText,
  era: (value) => value === 'legacy' || value === 'modern',
  call: optional(isCount),
  bytes: isCount,
  hidden: optional(isCount),
  cut: optional((value) => value === true),
  message: isObject,
};

function optional(isValid: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isValid(value);
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
