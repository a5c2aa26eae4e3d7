import type { BridgeError } from '../../errors.ts';
import { type InputAnswers, readInputRequired } from '../../mcp/classify/input-required.ts';
import { isInteractive } from '../../mcp/vocabulary/methods.ts';
import type { Call } from '../../relay/call.ts';
import type { Frame } from '../../wire/frame.ts';
import { MAX_ASKING_MS, MAX_ROUNDS } from '../asking-limits.ts';
import type { HeldBytes } from '../parked-bytes.ts';
import { type CallAtModernServerHost, noCapacity, tooManyRounds, violation } from './call-host.ts';
import { InputRound } from './input-round.ts';

/**
 * Pauses before a call is repeated for a server that requires no input but only the repetition. Each pause is twice as
 * long as the one before, up to the maximum.
 */
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;

export interface CallRoundsOptions {
  readonly host: CallAtModernServerHost;
  /** The client's call, which waits for the last round. */
  readonly call: Call;
  /** Called when the call can be made again, with `inputs`. */
  readonly onReady: () => void;
  readonly onViolation: (reason: BridgeError) => void;
  readonly onInputFailed: (reason: BridgeError) => void;
}

/**
 * - `idle`: nothing is required now.
 * - `collecting`: the client is being asked for the input that the server needs.
 * - `pausing`: the server requires the repetition only, which follows after a pause.
 */
type RoundsState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'collecting'; readonly round: InputRound }
  | { readonly kind: 'pausing'; readonly stopTimer: () => void };

const IDLE: RoundsState = { kind: 'idle' };

/**
 * The rounds of one call. In each, the client is asked for the input that the server requires, or a pause passes, until
 * the call can be made again. [spec 2026-07-28 basic/patterns/mrtr#client-requirements-basic-workflow]
 */
export class CallRounds {
  readonly #options: CallRoundsOptions;
  readonly #startedMs: number;
  #state: RoundsState = IDLE;
  #count = 0;
  /** Number of consecutive pauses. */
  #pauses = 0;
  #inputs: InputAnswers | undefined;
  /** Bytes that are held for the inputs, or for the round that is under way. */
  #held: HeldBytes | undefined;

  constructor(options: CallRoundsOptions) {
    this.#options = options;
    this.#startedMs = options.host.clock.now();
  }

  /** The client's input from the last round. */
  get inputs(): InputAnswers | undefined {
    return this.#inputs;
  }

  /** Starts a round, for an answer of the server that requires input. */
  require(inputRequired: Frame): void {
    const { host, call, onViolation, onInputFailed } = this.#options;
    const { serverName, profile, clock } = host;
    if (!isInteractive(call.method)) {
      return onViolation(violation(serverName, `it required input for ${call.method}`));
    }
    const required = readInputRequired(inputRequired, profile.capabilities);
    if ('fault' in required) return onViolation(violation(serverName, required.fault));
    if (this.#count === MAX_ROUNDS) return onInputFailed(tooManyRounds(serverName, MAX_ROUNDS));
    this.#count += 1;
    call.lastActiveMs = clock.now();
    const { requestState, requests } = required;
    this.#inputs = undefined;
    const stateBytes = requestState?.length ?? 0;
    if (!this.hold(stateBytes)) return onInputFailed(noCapacity(serverName));
    if (requests.size === 0) return this.#pause(requestState);
    this.#pauses = 0;
    const round = new InputRound({
      host,
      call,
      untilMs: this.#startedMs + MAX_ASKING_MS,
      hold: (bytes) => this.hold(stateBytes + bytes),
      onAnswered: (responses) => this.#ready(responses, requestState),
      onFailed: onInputFailed,
    });
    this.#state = { kind: 'collecting', round };
    round.start(requests);
  }

  #pause(requestState: Buffer | undefined): void {
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** this.#pauses, MAX_PAUSE_MS);
    this.#pauses += 1;
    const stopTimer = this.#options.host.clock.after(pauseMs, () => this.#ready(new Map(), requestState));
    this.#state = { kind: 'pausing', stopTimer };
  }

  #ready(responses: ReadonlyMap<string, Buffer>, requestState: Buffer | undefined): void {
    const { host, call, onReady } = this.#options;
    this.#state = IDLE;
    call.lastActiveMs = host.clock.now();
    this.#inputs = { responses, requestState };
    onReady();
  }

  /** Sets the number of bytes that the call holds while it waits for input. Returns false if that exceeds the limit. */
  hold(bytes: number): boolean {
    if (bytes === 0 && this.#held === undefined) return true;
    this.#held ??= this.#options.host.openHeld();
    return this.#held.set(bytes);
  }

  /** Withdraws the open questions. No callback is called. */
  cancel(reason: string): void {
    const state = this.#state;
    this.#state = IDLE;
    if (state.kind === 'collecting') state.round.cancel(reason);
    if (state.kind === 'pausing') state.stopTimer();
  }

  /** Called when the call does not need the inputs anymore. */
  clear(): void {
    this.#inputs = undefined;
    this.hold(0);
  }
}
