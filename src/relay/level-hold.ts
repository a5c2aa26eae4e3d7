import type { Clock } from '../deps.ts';
import { BridgeError } from '../errors.ts';
import { type LogLevel, severityOf } from '../mcp/vocabulary/log-levels.ts';
import { SET_LEVEL } from '../mcp/vocabulary/methods.ts';
import type { Frame } from '../wire/frame.ts';
import { requestFrame } from '../wire/write-message.ts';
import { Exchange } from './exchange.ts';
import type { ServerListener, UpstreamLink } from './ports.ts';

/** Requests come in quick succession; a server is not told of each that it may be quieter again. */
export const LEVEL_HOLD_MS = 5000;
/** The quietest level there is; none turns log messages off. */
const QUIETEST: LogLevel = 'emergency';

export interface LevelHoldOptions {
  readonly clock: Clock;
  /** Opens a link to the server whose level is held. */
  readonly dial: (listener: ServerListener) => UpstreamLink;
}

/**
 * - `idle`: the level is what the clients want.
 * - `holding`: it stays what it was for those that have left.
 * - `releasing`: the server is told that they are gone.
 */
type HoldState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'holding'; readonly link: UpstreamLink; readonly level: LogLevel; readonly cancel: () => void }
  | { readonly kind: 'releasing'; readonly link: UpstreamLink; readonly exchange: Exchange };

const IDLE: HoldState = { kind: 'idle' };

/** Keeps the log level of a session's server for a moment after the last request that wanted it. */
export class LevelHold implements ServerListener {
  readonly #options: LevelHoldOptions;
  #state: HoldState = IDLE;

  constructor(options: LevelHoldOptions) {
    this.#options = options;
  }

  /** One that wanted this level leaves. */
  hold(level: LogLevel): void {
    const state = this.#state;
    const link = state.kind === 'idle' ? this.#options.dial(this) : state.link;
    const held = state.kind === 'holding' && severityOf(state.level) <= severityOf(level) ? state.level : level;
    if (state.kind === 'holding') state.cancel();
    const cancel = this.#options.clock.after(LEVEL_HOLD_MS, () => this.#release(link));
    this.#state = { kind: 'holding', link, level: held, cancel };
    if (state.kind !== 'holding' || state.level !== held) link.send(levelRequest(held), this.#exchange());
  }

  #release(link: UpstreamLink): void {
    const exchange = this.#exchange();
    this.#state = { kind: 'releasing', link, exchange };
    link.send(levelRequest(QUIETEST), exchange);
  }

  #exchange(): Exchange {
    return new Exchange('level', SET_LEVEL, { isOpen: true }, undefined, this.#options.clock.now());
  }

  fromServer(frame: Frame, exchange?: Exchange): void {
    if (this.#state.kind === 'releasing' && frame.isResponse && exchange === this.#state.exchange) this.close();
  }

  serverFault(): void {
    this.close();
  }

  serverDrained(): void {}

  serverClosed(_reason: BridgeError): void {
    this.close();
  }

  close(): void {
    const state = this.#state;
    this.#state = IDLE;
    if (state.kind === 'holding') state.cancel();
    if (state.kind !== 'idle') state.link.close(RELEASED);
  }
}

function levelRequest(level: LogLevel): Frame {
  return requestFrame('level', SET_LEVEL, { level });
}

const RELEASED = new BridgeError('ERR_SESSION_CLOSED', 'Nobody wants this log level any more.');
