/** Limits of one HTTP call: the time of each phase, and the size of response bodies that are discarded or held back. */
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { showUrl } from '../shown-url.ts';
import { nameProxy } from './network-error.ts';

/**
 * Time limits in milliseconds; 0 means no limit. `connectMs` covers name resolution, TCP, TLS and the tunnel of a
 * proxy. `firstByteMs` runs from the last byte of the request to the head of the response. `idleMs` limits a pause
 * within a response, and `callMs` the whole call, even while data arrives.
 */
export interface CallTimeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly callMs: number;
}

export const NO_TIMEOUTS: CallTimeouts = { connectMs: 0, firstByteMs: 0, idleMs: 0, callMs: 0 };

/** The value of `data.phase` in ERR_UPSTREAM_TIMEOUT. */
export type CallPhase = 'connect' | 'first-byte' | 'idle' | 'call';

const descriptions: Readonly<Record<CallPhase, string>> = {
  connect: 'could not be connected to within',
  'first-byte': 'took the request but did not begin to answer within',
  idle: 'fell silent in the middle of its answer for',
  call: 'did not finish its answer within',
};

/**
 * Creates the error for an exceeded time limit. With `proxy`, the message for the connect phase names the proxy,
 * because the fault may be there.
 */
export function timeoutError(url: URL, phase: CallPhase, limitMs: number, proxy?: URL): BridgeError {
  const way = phase === 'connect' && proxy !== undefined ? ` through the ${nameProxy(proxy)}` : '';
  const message = `The server at ${showUrl(url)} ${descriptions[phase]} ${limitMs} ms${way} (the ${phase} limit).`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase, timeoutMs: limitMs } });
}

/** Runs the time limits of one call: one timer for the current phase and one for the whole call. */
export class PhaseTimer {
  readonly #clock: Clock;
  readonly #limits: CallTimeouts;
  readonly #onTimeout: (phase: CallPhase, limitMs: number) => void;
  #cancelPhase: (() => void) | undefined = undefined;
  #cancelCall: (() => void) | undefined = undefined;
  /** The longest pause allowed in the `idle` phase; 0 means no limit. */
  #idleMs = 0;
  /** The time at which bytes last arrived in the `idle` phase; `paused` while the bridge does not read. */
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

  /** Starts the `idle` phase. A `maxIdleMs` above 0 applies to this response unless the configured limit is shorter. */
  enterIdle(maxIdleMs = 0): void {
    this.#cancelPhase?.();
    this.#cancelPhase = undefined;
    this.#activity = this.#clock.now();
    const { idleMs } = this.#limits;
    this.#idleMs = idleMs > 0 && maxIdleMs > 0 ? Math.min(idleMs, maxIdleMs) : idleMs || maxIdleMs;
    if (this.#idleMs > 0) this.#watchIdle(this.#idleMs);
  }

  /**
   * Records that bytes have arrived. Called for each chunk, so it stores only the time; the timer reads it on expiry.
   */
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

// ---- Responses that are discarded or held back

/** The body of a discarded response is read to its end, which keeps the connection, if it is not longer than this. */
const MAX_DRAINED_BYTES = 16 * 1024;

/** A refusal gives its reason in a few lines; of a longer body, the beginning is enough. */
const MAX_HELD_BYTES = 64 * 1024;

/**
 * Reads the body of a refusal that may be passed on later. Resolves when the body has ended, was cut off or is too
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

/** Discards a response, and keeps its connection if the rest of the body is short. */
export function discardResponse(message: ClientRequest, response: IncomingMessage): void {
  const length = Number(response.headers['content-length'] ?? Number.NaN);
  response.on('error', () => {});
  if (length <= MAX_DRAINED_BYTES && message.writableFinished) response.resume();
  else message.destroy();
}

/**
 * Ends a request that was answered before all of it was sent. Otherwise a server that does not read the rest would keep
 * the request and its connection open for as long as it likes. [RFC 9112 9.5]
 */
export function stopSending(message: ClientRequest | undefined): void {
  if (message?.writableFinished === false) message.destroy();
}
