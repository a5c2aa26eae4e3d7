import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../deps.ts';
import { BridgeError, type ErrorCode } from '../../errors.ts';
import { isJson, packingOf } from '../../http/headers.ts';
import { type BodyLimits, readBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { type ReadLimits, type ReadResult, readMessage } from '../../wire/read-message.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';
import type { Turn, TurnGate } from './turn-gate.ts';

/**
 * Limits of what a client sends at once. A batch of a hundred messages is more than any client was seen to send. Each value
 * costs as much time as a hundred bytes of a string: 16 MiB with three million of them would keep all other clients waiting.
 */
export const CLIENT_LIMITS = { maxBatch: 100, maxValues: 1_000_000 };

/** What a POST brought: one message, or several in an array. */
export type PostedMessages =
  | { readonly kind: 'message'; readonly frame: Frame }
  | { readonly kind: 'batch'; readonly items: readonly (Frame | EnvelopeFault)[] };

/** The id to answer under, where there is one. */
export function idOf(messages: PostedMessages): JsonRpcId | undefined {
  return messages.kind === 'message' && messages.frame.kind === 'request' ? messages.frame.id : undefined;
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

export interface TurnLimits extends BodyLimits {
  /** What the JSON of a body may hold. */
  readonly messages: ReadLimits;
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
 * Reads a POST when its session has capacity for one more message, and hands its content over when there still is: many
 * may be read at a time, and the first of them may fill the server's pipe. The content is checked completely, as the
 * client is not trusted to write JSON. Refuses what cannot be taken.
 */
export function readInTurn(post: PostInTurn): void {
  if (post.gate?.lets('unread') ?? true) return read(post);
  hold(post, { kind: 'unread', bytes: 0, run: () => read(post) });
}

function read(post: PostInTurn): void {
  const { request, response, limits, gate } = post;
  const undeclared = checkDeclared(request);
  if (undeclared !== undefined) return respondError(response, undeclared);
  readBody(request, limits, (error, body) => {
    if (error !== undefined) return respondError(response, error);
    const messages = readMessage(body, limits.messages);
    if (messages.kind === 'fault') return respondError(response, faultOf(messages), messages.id);
    const kind = kindOf(messages);
    if (gate?.lets(kind) ?? true) return post.accepted(messages);
    hold(post, { kind, bytes: bytesOf(messages), run: () => post.accepted(messages) });
  });
}

function faultOf({ fault, reason }: Fault): BridgeError {
  return new BridgeError(faultCodes[fault], `The body was refused: ${reason}. Instead, ${waysOut[fault]}.`);
}

/** A server that hangs never takes what waits for it, and nobody else knows of the message yet, so its wait has an end. */
function hold({ gate, response, limits }: PostInTurn, turn: Turn): void {
  const { clock, maxWaitMs } = limits;
  let stopWaiting = (): void => {};
  const held: Turn = {
    ...turn,
    run: () => {
      stopWaiting();
      turn.run();
    },
  };
  if (gate?.hold(held) !== true) return respondError(response, TOO_MANY_WAIT);
  if (maxWaitMs === 0) return;
  stopWaiting = clock.after(maxWaitMs, () => {
    gate.leave(held);
    const message = `The server took no message for ${maxWaitMs} ms, so this one was not sent; raise --request-timeout if it needs longer.`;
    const data = { phase: 'turn', timeoutMs: maxWaitMs };
    respondError(response, new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data }));
  });
}

const TOO_MANY_WAIT = new BridgeError(
  'ERR_SESSION_BUSY',
  'Too many messages of this session are waiting already; read what the server has sent first.',
  { retryAfterMs: 1000 },
);

function isAnswer(item: Frame | EnvelopeFault): boolean {
  return item instanceof Frame && item.isResponse;
}

function kindOf(messages: PostedMessages): Turn['kind'] {
  if (messages.kind === 'message') return isAnswer(messages.frame) ? 'answer' : 'message';
  return messages.items.every(isAnswer) ? 'answer' : 'message';
}

function bytesOf(messages: PostedMessages): number {
  if (messages.kind === 'message') return messages.frame.bytes.length;
  return messages.items.reduce((sum, item) => sum + (item instanceof Frame ? item.bytes.length : 0), 0);
}
