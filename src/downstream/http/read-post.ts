/** Reads POST bodies. Each message has its turn: one that cannot be taken yet is held in memory or stays unread. */
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
 * Limits of one body. No client was seen to send a batch of more than a hundred messages. Each value costs as much time
 * as a hundred bytes of a string: 16 MiB with three million values would keep all other clients waiting.
 */
export const CLIENT_LIMITS = { maxBatch: 100, maxValues: 1_000_000 };

/** The content of a POST: one message, or several in an array. */
export type PostedMessages =
  | { readonly kind: 'message'; readonly frame: Frame }
  | { readonly kind: 'batch'; readonly items: readonly (Frame | EnvelopeFault)[] };

/** Returns the id for a response; undefined: there is no single request to respond to. */
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

/** Returns the error of a request whose headers declare a body that is not acceptable. */
function checkDeclared({ headers }: IncomingMessage): BridgeError | undefined {
  const type = headers['content-type'];
  if (!isJson(type)) return wrongType(`Expected Content-Type: application/json, got ${quoted(type)}.`);
  // A decompressed body could be a thousand times as large, and no MCP specification requires compression.
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
  /** Limits of the JSON in a body. */
  readonly messages: ReadLimits;
  readonly clock: Clock;
  /** Time limit of a message that waits for its turn; 0: no limit. */
  readonly maxWaitMs: number;
}

export interface PostInTurn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly limits: TurnLimits;
  /** Undefined: the sender has no session, so its messages wait for no turn. */
  readonly gate: TurnGate | undefined;
  accepted(messages: PostedMessages): void;
}

/**
 * Reads a POST once its session has capacity for one more message, and passes the content on if there is still capacity
 * then: many bodies may be read at a time, and the first of them may fill the server's pipe. The content is checked
 * completely, since the client is not trusted to write valid JSON. Rejects what cannot be taken.
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

/**
 * Holds a message back until its turn, with a time limit: a server that hangs would never take it, and no other timer
 * covers a message that was not passed on yet.
 */
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

/**
 * Reason to hold a client's messages back. `server`: the server's pipe is full. `reader`: the client itself does not
 * read.
 */
export type GateReason = 'server' | 'reader';

/**
 * A POST that waits for its turn.
 * - `unread`: its body has not been read. It waits while the server takes nothing, or while MAX_HELD_BYTES wait in
 *   memory.
 * - `message`: it may make the server send more. It waits for the server, and for the client to read.
 * - `answer`: the server waits for it. It waits for the server only, since a client that does one thing after the other
 *   may send it before it reads on.
 */
export interface Turn {
  readonly kind: 'unread' | 'message' | 'answer';
  /** Bytes held in memory while it waits. */
  readonly bytes: number;
  run(): void;
}

/** Turns of one client that may wait at a time; each holds a connection. */
export const MAX_WAITING_TURNS = 256;
/** Once this many bytes wait in memory, further bodies stay unread. */
export const MAX_HELD_BYTES = 1024 * 1024;
/**
 * Limit of the bytes that wait. Bodies whose reading began below MAX_HELD_BYTES may still arrive: any number, each as
 * large as a message may be. The limit leaves room for a burst of large calls; a single message may exceed it.
 */
export const MAX_BURST_BYTES = 8 * 1024 * 1024;
const LIMITS = { maxItems: MAX_WAITING_TURNS, maxBytes: MAX_BURST_BYTES };

/** Holds a client's messages back while they cannot be taken, and releases them in order. */
export class TurnGate {
  readonly #closedFor = new Set<GateReason>();
  /** Undefined until the gate holds its first message, which most gates never do. */
  #waiting: ByteQueue<Turn> | undefined;
  #isOpenForGood = false;

  /** Returns true if a turn of this kind may go on now; otherwise it has to be held. */
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

  /**
   * Keeps the turn until the gate lets it pass, and then runs it. False: too many wait already, so this one has to be
   * rejected.
   */
  hold(turn: Turn): boolean {
    this.#waiting ??= new ByteQueue<Turn>(LIMITS, ({ bytes }) => bytes);
    if (!mayHold(this.#waiting, turn)) return false;
    this.#waiting.add(turn);
    return true;
  }

  /** Removes a turn that no longer waits. */
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

  /** Opens the gate permanently, once the client is gone. The turns that waited find that out when they run. */
  openForGood(): void {
    this.#isOpenForGood = true;
    this.#closedFor.clear();
    this.#letPass();
  }

  /** Runs the turns that may pass. Each may close the gate again; the others then keep waiting, in order. */
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
