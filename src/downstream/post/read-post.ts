import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError, type ErrorCode } from '../../errors.ts';
import { isJson, packingOf } from '../../http/content-type.ts';
import { type BodyLimits, readBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { type ReadResult, readMessage } from '../../wire/read-message.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';
import type { Turn, TurnGate } from './turn-gate.ts';

/**
 * Limits of what a client sends at once. A batch of a hundred messages is more than any client was seen to send. Each value
 * costs as much time as a hundred bytes of a string: 16 MiB with three million of them would keep all other clients waiting.
 */
export const CLIENT_LIMITS = { maxBatch: 100, maxValues: 1_000_000 };

export interface PostLimits extends BodyLimits {
  /** Levels of arrays and objects. */
  readonly maxJsonDepth: number;
}

/** What a POST brought: one message, or several in an array. */
export type PostedMessages =
  | { readonly kind: 'message'; readonly frame: Frame }
  | { readonly kind: 'batch'; readonly items: readonly (Frame | EnvelopeFault)[] };

/** The id to answer under, where there is one. */
export function idOf(messages: PostedMessages): JsonRpcId | undefined {
  return messages.kind === 'message' && messages.frame.kind === 'request' ? messages.frame.id : undefined;
}

/** Called once; `id` is the request's when the error is about a readable one. */
export interface PostHandler {
  accepted(messages: PostedMessages): void;
  refused(error: BridgeError, id?: JsonRpcId): void;
}

type Fault = Extract<ReadResult, { kind: 'fault' }>;

const faultCodes: Readonly<Record<Fault['fault'], ErrorCode>> = {
  parse: 'ERR_WIRE_PARSE',
  message: 'ERR_WIRE_MESSAGE',
  batch: 'ERR_WIRE_BATCH',
};

const waysOut: Readonly<Record<Fault['fault'], string>> = {
  parse: 'post JSON in UTF-8',
  message: 'post a request, a notification or a response of JSON-RPC 2.0',
  batch: 'post one message or a few in an array',
};

/** Reads the JSON-RPC content of a POST, checked completely: the client is not trusted to write JSON. */
export function readPost(request: IncomingMessage, limits: PostLimits, handler: PostHandler): void {
  const undeclared = checkDeclared(request);
  if (undeclared !== undefined) return handler.refused(undeclared);
  readBody(request, limits, (error, body) => {
    if (error !== undefined) return handler.refused(error);
    const result = readMessage(body, { ...CLIENT_LIMITS, maxDepth: limits.maxJsonDepth });
    if (result.kind !== 'fault') return handler.accepted(result);
    const message = `The body was refused: ${result.reason}. Instead, ${waysOut[result.fault]}.`;
    handler.refused(new BridgeError(faultCodes[result.fault], message), result.id);
  });
}

/** What is wrong with what the headers say of the body. */
function checkDeclared({ headers }: IncomingMessage): BridgeError | undefined {
  const type = headers['content-type'];
  if (!isJson(type)) return wrongType(`Expected Content-Type: application/json, got ${quoted(type)}.`);
  // Unpacked it could be a thousand times as large; no specification of MCP wants bodies packed.
  const packing = packingOf(headers['content-encoding']);
  if (packing === undefined) return undefined;
  return wrongType(`Expected a body as it is, without Content-Encoding: ${quoted(packing)}; send it uncompressed.`);
}

function wrongType(message: string): BridgeError {
  return new BridgeError('ERR_HTTP_CONTENT_TYPE', message);
}

function quoted(value: string | undefined): string {
  return value === undefined ? 'none' : JSON.stringify(value.slice(0, 100));
}

export interface TurnLimits extends PostLimits {
  readonly clock: Clock;
  /** How long a message may wait for its turn; 0: no limit. */
  readonly maxWaitMs: number;
}

export interface PostInTurn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: TurnLimits;
  /** Undefined: the sender has no session and waits for nobody. */
  readonly gate: TurnGate | undefined;
  accepted(messages: PostedMessages): void;
}

/**
 * Reads a POST when its session has room for one more message, and hands its content over when there still is: many
 * may be read at a time, and the first of them may fill the server's pipe. Refuses what cannot be taken.
 */
export function readInTurn({ request, response, limits, gate, accepted }: PostInTurn): void {
  const enter = (turn: Turn): void => {
    if (gate === undefined) return turn.run();
    if (enterInTime(gate, turn, limits, (error) => respondError(response, error))) return;
    const busy = 'Too many messages of this session wait already; read what it has sent first.';
    respondError(response, new BridgeError('ERR_SESSION_BUSY', busy, { retryAfterMs: 1000 }));
  };
  const read = (): void =>
    readPost(request, limits, {
      accepted: (messages) => enter({ ...sizeUp(messages), run: () => accepted(messages) }),
      refused: (error, id) => respondError(response, error, id),
    });
  enter({ kind: 'unread', bytes: 0, run: read });
}

/**
 * A server that hangs never takes what waits for it, and nobody else knows of the message yet. False: too many wait.
 * `refuse` is called instead of the turn, when it has waited too long.
 */
function enterInTime(
  gate: TurnGate,
  turn: Turn,
  { clock, maxWaitMs }: TurnLimits,
  refuse: (error: BridgeError) => void,
): boolean {
  let stopWaiting = (): void => {};
  const run = (): void => {
    stopWaiting();
    turn.run();
  };
  const timed: Turn = { kind: turn.kind, bytes: turn.bytes, run };
  if (!gate.enter(timed)) return false;
  if (maxWaitMs === 0 || !gate.holds(timed)) return true;
  stopWaiting = clock.after(maxWaitMs, () => {
    gate.leave(timed);
    const message = `The server took no message for ${maxWaitMs} ms, so this one was not sent; raise --request-timeout if it needs longer.`;
    refuse(new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'turn', timeoutMs: maxWaitMs } }));
  });
  return true;
}

function sizeUp(messages: PostedMessages): Pick<Turn, 'kind' | 'bytes'> {
  const items = messages.kind === 'message' ? [messages.frame] : messages.items;
  let bytes = 0;
  let kind: Turn['kind'] = 'answer';
  for (const item of items) {
    if (item instanceof Frame) bytes += item.bytes.length;
    if (!(item instanceof Frame && item.isResponse)) kind = 'message';
  }
  return { kind, bytes };
}
