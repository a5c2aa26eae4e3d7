/** Reads what clients post, each message when it is its turn: one that cannot be taken is held back or stays unread. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ByteQueue } from '../../collections/bounded-collections.ts';
import type { Clock } from '../../deps.ts';
import { BridgeError, type ErrorCode } from '../../errors.ts';
import { isJson, packingOf } from '../../http/headers.ts';
import { type BodyLimits, readBody } from '../../http/server/read-body.ts';
import { respondError } from '../../http/server/respond.ts';
import { Frame, type JsonRpcId } from '../../wire/frame.ts';
import { type ReadLimits, type ReadResult, readMessage } from '../../wire/read-message.ts';
import type { EnvelopeFault } from '../../wire/scan-envelope.ts';

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

// ---- Turns

/** Why a client's messages are held back: the server's pipe is full, or the client itself does not read. */
export type GateReason = 'server' | 'reader';

/**
 * What waits:
 * - `unread`: a request whose body has not been read; it waits for the server, and while much waits in memory.
 * - `message`: what makes the server say more; it waits for the server and for the client's own reading.
 * - `answer`: what a server waits for; a client that reads one thing after the other may send it before it reads on,
 *   so it waits for the server only.
 */
export interface Turn {
  readonly kind: 'unread' | 'message' | 'answer';
  /** Held in memory meanwhile. */
  readonly bytes: number;
  run(): void;
}

/** Turns of one client that may wait at once; each holds a connection. */
export const MAX_WAITING_TURNS = 256;
/** Once so much waits in memory, further bodies stay unread. */
export const MAX_HELD_BYTES = 1024 * 1024;
/**
 * Those whose reading had begun before may still come: any number, each as large as a message may be. So much of it is
 * taken, a burst of large calls; or one message, however large.
 */
export const MAX_BURST_BYTES = 8 * 1024 * 1024;
const LIMITS = { maxItems: MAX_WAITING_TURNS, maxBytes: MAX_BURST_BYTES };

/** Holds a client's messages back while they cannot be taken; then lets them go in order. */
export class TurnGate {
  readonly #closedFor = new Set<GateReason>();
  /** Most gates never hold anything: undefined until one does. */
  #waiting: ByteQueue<Turn> | undefined;
  #isOpenForGood = false;

  /** May what is of this kind go on now? Where not, it is held. */
  lets(kind: Turn['kind']): boolean {
    if (this.#closedFor.has('server')) return false;
    switch (kind) {
      case 'answer':
        return true;
      case 'message':
        return !this.#closedFor.has('reader');
      case 'unread':
        return this.#waiting === undefined || this.#waiting.bytes < MAX_HELD_BYTES;
    }
  }

  /** Keeps it until the gate opens for it, and runs it then. False: too many wait already, refuse this one. */
  hold(turn: Turn): boolean {
    this.#waiting ??= new ByteQueue<Turn>(LIMITS, ({ bytes }) => bytes);
    if (!mayHold(this.#waiting, turn)) return false;
    this.#waiting.add(turn);
    return true;
  }

  /** One that is held back waits no longer. */
  leave(turn: Turn): void {
    this.#waiting?.removeFirst((other) => other === turn);
  }

  close(reason: GateReason): void {
    if (!this.#isOpenForGood) this.#closedFor.add(reason);
  }

  open(reason: GateReason): void {
    this.#closedFor.delete(reason);
    this.#letPass();
  }

  /** The client is gone: those who wait find that out by themselves. */
  openForGood(): void {
    this.#isOpenForGood = true;
    this.#closedFor.clear();
    this.#letPass();
  }

  /** One that passes may close the gate again: the others then keep waiting, in order. */
  #letPass(): void {
    for (;;) {
      const turn = this.#waiting?.removeFirst(({ kind }) => this.lets(kind));
      if (turn === undefined) return;
      turn.run();
    }
  }
}

function mayHold(waiting: ByteQueue<Turn>, turn: Turn): boolean {
  if (waiting.length >= MAX_WAITING_TURNS) return false;
  return turn.bytes === 0 || waiting.bytes === 0 || waiting.fits(turn);
}
