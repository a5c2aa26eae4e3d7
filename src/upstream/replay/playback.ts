import type { Clock } from '../../deps.ts';
import {
  findCanceledId,
  findProgressToken,
  rewriteProgress,
  rewriteServerCanceled,
  rewriteSubscriptionId,
} from '../../mcp/classify/correlators.ts';
import { readRequestMetadata } from '../../mcp/classify/request-metadata.ts';
import { CANCELED, LISTEN_ACKNOWLEDGED, LOG_MESSAGE, PROGRESS } from '../../mcp/vocabulary/methods.ts';
import type { Era } from '../../mcp/vocabulary/revisions.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../../wire/frame.ts';
import { idKey, type RecordedStep } from './recorded-call.ts';

/** Longer timers fire at once. */
const MAX_PAUSE_MS = 2 ** 31 - 1;

/** A message to be sent, and the pause before it. A `change` belongs to no call. */
export interface PlayedStep extends Omit<RecordedStep, 'kind'> {
  readonly kind: RecordedStep['kind'] | 'answer' | 'change';
}

/** Sends the messages of playbacks to their client. */
export interface PlaybackHost {
  /** True while the client takes no messages. `advance` is called when it does again. */
  readonly isPaused: boolean;
  deliver(frame: Frame): void;
  /** Sends a request to the client under an id of its own, which is returned. */
  ask(question: Frame, asking: Playback): JsonRpcId;
  /** Sends what belongs to no call. */
  deliverChange(change: Frame, era: Era): void;
  /** Called when the answer was sent. */
  answered(playback: Playback): void;
  /** Called when nothing is left to be sent. */
  ended(playback: Playback): void;
}

export interface PlaybackOptions {
  /** The request of the client; undefined for what follows a handshake. */
  readonly request: Frame | undefined;
  readonly era: Era;
  readonly steps: readonly PlayedStep[];
  /** How many times faster than recorded the messages are sent; 0: without pauses. */
  readonly speed: number;
  readonly host: PlaybackHost;
  readonly clock: Clock;
}

/**
 * - `ready`: the next message can be sent once its pause is over.
 * - `pausing`: this pause before the next message is not over.
 * - `paused`: it is over, and the message can be sent.
 * - `asking`: the client was asked something, and its answer goes first.
 * - `ended`: nothing is left, or the client has withdrawn its request.
 */
type PlaybackState =
  | { readonly kind: 'ready' | 'paused' | 'asking' | 'ended' }
  | { readonly kind: 'pausing'; readonly cancel: () => void };

/** Sends the recorded messages of one call in their order, with the ids and tokens of the request that is answered now. */
export class Playback {
  readonly request: Frame | undefined;
  readonly #options: PlaybackOptions;
  /** The request's own progress token as JSON; undefined if it wants no progress. */
  readonly #progressToken: Buffer | undefined;
  /** Ids of questions, by the ids that they had in the recording. */
  readonly #asked = new Map<string, JsonRpcId>();
  #state: PlaybackState = { kind: 'ready' };
  #index = 0;

  constructor(options: PlaybackOptions) {
    const { request } = options;
    this.request = request;
    this.#options = options;
    const token = request && findProgressToken(request);
    this.#progressToken = token && Buffer.from(request.bytes.subarray(token.start, token.end));
  }

  /** Sends what can be sent now. */
  advance(): void {
    const { steps, host, speed, clock } = this.#options;
    while ((this.#state.kind === 'ready' || this.#state.kind === 'paused') && !host.isPaused) {
      const step = steps[this.#index];
      if (step === undefined) return this.#end();
      const pauseMs = speed === 0 || this.#state.kind === 'paused' ? 0 : Math.min(MAX_PAUSE_MS, step.delayMs / speed);
      if (pauseMs > 0) {
        const cancel = clock.after(pauseMs, () => {
          this.#state = { kind: 'paused' };
          this.advance();
        });
        this.#state = { kind: 'pausing', cancel };
        return;
      }
      this.#index += 1;
      this.#state = { kind: step.kind === 'question' ? 'asking' : 'ready' };
      this.#send(step);
    }
  }

  /** Ids of the questions that were asked. */
  get questions(): Iterable<JsonRpcId> {
    return this.#asked.values();
  }

  /** Call this when the client has answered the question that was asked last, in whatever way. */
  questionAnswered(): void {
    if (this.#state.kind !== 'asking') return;
    this.#state = { kind: 'ready' };
    this.advance();
  }

  /** Sends nothing more. */
  stop(): void {
    if (this.#state.kind === 'pausing') this.#state.cancel();
    this.#end();
  }

  #end(): void {
    if (this.#state.kind === 'ended') return;
    this.#state = { kind: 'ended' };
    this.#options.host.ended(this);
  }

  #send({ kind, frame }: PlayedStep): void {
    const { host } = this.#options;
    switch (kind) {
      case 'question':
      case 'unanswered':
        this.#asked.set(idKey(frame.id), host.ask(frame, this));
        return;
      case 'notification': {
        const sent = this.#ownNotification(frame);
        if (sent !== undefined) host.deliver(sent);
        return;
      }
      case 'change':
        return host.deliverChange(frame, this.#options.era);
      case 'answer':
        host.answered(this);
        host.deliver(this.request === undefined ? frame : withId(frame, idToken(this.request)));
    }
  }

  /** Returns the notification as it belongs to the request. Undefined if the request does not want it. */
  #ownNotification(frame: Frame): Frame | undefined {
    const { request, era } = this.#options;
    switch (frame.method) {
      case PROGRESS:
        return this.#progressToken && rewriteProgress(frame, this.#progressToken);
      case LISTEN_ACKNOWLEDGED:
        return request && rewriteSubscriptionId(frame, idToken(request));
      case LOG_MESSAGE:
        // [spec 2026-07-28 server/utilities/logging] only a request that names a level gets log messages.
        return era === 'legacy' || (request !== undefined && wantsLogs(request)) ? frame : undefined;
      case CANCELED: {
        const asked = this.#asked.get(idKey(findCanceledId(frame)?.value));
        return asked === undefined ? undefined : rewriteServerCanceled(frame, asked);
      }
      default:
        return frame;
    }
  }
}

function wantsLogs(request: Frame): boolean {
  const metadata = readRequestMetadata(request);
  return !('fault' in metadata) && metadata.logLevel !== undefined;
}
