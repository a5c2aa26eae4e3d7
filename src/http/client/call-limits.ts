/** What one call over HTTP may take: how long each of its phases, and how much of a response that nobody needs. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { nameProxy } from './network-error.ts';

/** Milliseconds; 0: no limit. */
export interface CallTimeouts {
  /** Name resolution, TCP, TLS, a proxy's tunnel. */
  readonly connectMs: number;
  /** From the request's last byte to the response's head. */
  readonly firstByteMs: number;
  /** A pause within a response. */
  readonly idleMs: number;
  /** A whole call, however talkative. */
  readonly callMs: number;
}

export const NO_TIMEOUTS: CallTimeouts = { connectMs: 0, firstByteMs: 0, idleMs: 0, callMs: 0 };

/** `data.phase` of ERR_UPSTREAM_TIMEOUT. */
export type CallPhase = 'connect' | 'first-byte' | 'idle' | 'call';

const descriptions: Readonly<Record<CallPhase, string>> = {
  connect: 'could not be connected to within',
  'first-byte': 'took the request but did not begin to answer within',
  idle: 'fell silent in the middle of its answer for',
  call: 'did not finish its answer within',
};

/** `proxy`: through which the server is asked; where nothing is connected, the fault may be there. */
export function timeoutError(url: URL, phase: CallPhase, limitMs: number, proxy?: URL): BridgeError {
  const way = phase === 'connect' && proxy !== undefined ? ` through the ${nameProxy(proxy)}` : '';
  const message = `The server at ${showUrl(url)} ${descriptions[phase]} ${limitMs} ms${way} (the ${phase} limit).`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase, timeoutMs: limitMs } });
}

/** The limits of one call: one timer for the phase it is in, one for the whole. */
export class PhaseTimer {
  readonly #clock: Clock;
  readonly #limits: CallTimeouts;
  readonly #onTimeout: (phase: CallPhase, limitMs: number) => void;
  #cancelPhase: (() => void) | undefined = undefined;
  #cancelCall: (() => void) | undefined = undefined;
  /** How long nothing may happen in the `idle` phase; 0: no limit. */
  #idleMs = 0;
  /** When bytes last came in that phase; `paused` while we do not read. */
  #activity: number | 'paused' = 0;

  constructor(clock: Clock, limits: CallTimeouts, onTimeout: (phase: CallPhase, limitMs: number) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#onTimeout = onTimeout;
    if (limits.callMs > 0) this.#cancelCall = clock.after(limits.callMs, () => onTimeout('call', limits.callMs));
  }

  enter(phase: 'connect' | 'first-byte'): void {
    this.#cancelPhase?.();
    const limitMs = phase === 'connect' ? this.#limits.connectMs : this.#limits.firstByteMs;
    this.#cancelPhase = limitMs > 0 ? this.#clock.after(limitMs, () => this.#onTimeout(phase, limitMs)) : undefined;
  }

  /** `maxIdleMs`: a limit for this response, where there is none or a longer one. */
  enterIdle(maxIdleMs = 0): void {
    this.#cancelPhase?.();
    this.#cancelPhase = undefined;
    this.#activity = this.#clock.now();
    const { idleMs } = this.#limits;
    this.#idleMs = idleMs > 0 && maxIdleMs > 0 ? Math.min(idleMs, maxIdleMs) : idleMs || maxIdleMs;
    if (this.#idleMs > 0) this.#watchIdle(this.#idleMs);
  }

  /** Bytes came. Called for each chunk, so it only notes the time: the timer looks at it when it runs out. */
  touch(): void {
    if (this.#idleMs > 0) this.#activity = this.#clock.now();
  }

  pause(): void {
    this.#activity = 'paused';
  }

  resume(): void {
    this.#activity = this.#clock.now();
  }

  #watchIdle(delayMs: number): void {
    this.#cancelPhase = this.#clock.after(delayMs, () => {
      const idleMs = this.#idleMs;
      const silentMs = this.#activity === 'paused' ? 0 : this.#clock.now() - this.#activity;
      if (silentMs >= idleMs) this.#onTimeout('idle', idleMs);
      else this.#watchIdle(idleMs - silentMs);
    });
  }

  stop(): void {
    this.#cancelPhase?.();
    this.#cancelCall?.();
    this.#cancelPhase = undefined;
    this.#cancelCall = undefined;
  }
}

// ---- Responses that nobody needs, or not yet

/** A redirect's own page is read to its end, to keep the connection, if it is not longer than this. */
const MAX_DRAINED_BYTES = 16 * 1024;

/** A refusal gives its reason in a few lines; of a longer one the beginning is enough. */
const MAX_HELD_BYTES = 64 * 1024;

/**
 * Reads the body of a refusal that may be handed over later. Resolves when the body has ended, broken off or become too
 * long.
 */
export function holdResponse(response: Readable): Promise<Buffer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let byteLength = 0;
    const settle = (): void => resolve(Buffer.concat(chunks));
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      byteLength += chunk.length;
      if (byteLength >= MAX_HELD_BYTES) response.destroy();
    });
    response.on('error', () => {});
    response.on('close', settle);
    response.on('end', settle);
  });
}

/** Gets rid of a response that nobody needs, and keeps its connection where that is cheap. */
export function discardResponse(message: ClientRequest, response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Number.NaN);
  response.on('error', () => {});
  if (length <= MAX_DRAINED_BYTES && message.writableFinished) response.resume();
  else message.destroy();
}

/**
 * Ends a request that was answered before all of it had left. A server that does not read the rest would have it kept,
 * and its connection, for as long as it likes. [RFC 9112 9.5]
 */
export function stopSending(message: ClientRequest | undefined): void {
  if (message?.writableFinished === false) message.destroy();
}
