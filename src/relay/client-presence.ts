/** Describes the client of a session or a pipe to observers and traces. */
import type { ErrorCode } from '../errors.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import { ERAS, type Era } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
import type { MessageTaps } from './message-tap.ts';
import {
  type ClientIntroduction,
  type ClientOrigin,
  type DeprecatedFeature,
  type ObservedClient,
  type Observer,
  type OnClientLeft,
  type ServerSpeech,
  shownName,
} from './observer.ts';
import type { Tracer } from './tracer.ts';

/** Reads the introduction of a legacy client, which is in its `initialize` and holds for the whole session. */
function introductionOf(initialize: Frame): ClientIntroduction {
  const { name, version } = asFields(readField(initialize, 'clientInfo')) ?? {};
  return { ...UNKNOWN_LEGACY, name: shownName(name), version: shownName(version) };
}

const UNKNOWN_LEGACY: ClientIntroduction = { era: 'legacy', revision: undefined, name: undefined, version: undefined };

/** Reads the introduction of a modern client, which is in each of its requests. */
export function modernIntroductionOf(request: Frame): ClientIntroduction {
  const metadata = readRequestMetadata(request);
  const isReadable = !('fault' in metadata);
  const { name, version } = (isReadable && metadata.clientInfo) || {};
  const revision = isReadable ? shownName(metadata.revision) : undefined;
  return { era: 'modern', revision, name: shownName(name), version: shownName(version) };
}

/**
 * - `unknown`: the client has not been reported to the observer.
 * - `connected`: the client has been reported, and its end will be.
 * - `left`: nothing more is reported.
 */
type PresenceState =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'connected'; readonly onLeft: OnClientLeft | undefined }
  | { readonly kind: 'left' };

const UNKNOWN: PresenceState = { kind: 'unknown' };
const LEFT: PresenceState = { kind: 'left' };

/** The observers of one server's clients. */
export interface Observing {
  readonly observer: Observer | undefined;
  /** Joins calls with traces; undefined: calls are not traced. */
  readonly tracer: Tracer | undefined;
  readonly speech: ServerSpeech;
  /** The name of the server in observations. */
  readonly server: string;
  /** Sees the messages of its clients, and those that pass between the bridge and the server; undefined: nothing does. */
  readonly taps?: MessageTaps | undefined;
}

/** Describes the client of a session or a pipe to an observer. Without an observer and a tracer, no message is read. */
export class ClientPresence {
  readonly #observer: Observer | undefined;
  readonly #isTraced: boolean;
  readonly #origin: ClientOrigin;
  /** True if each request of the client describes it. */
  readonly #introducesEachRequest: boolean;
  /** Detected facts about the server that the client is connected to. */
  readonly #speech: ServerSpeech;
  /** The legacy client's description of itself. */
  #introduction = UNKNOWN_LEGACY;
  #state: PresenceState = UNKNOWN;
  /**
   * True while the client's next request may describe it: an observer or a tracer exists, and the client has not been
   * reported yet.
   */
  isAwaited: boolean;

  constructor(observing: Pick<Observing, 'observer' | 'tracer' | 'speech'>, origin: ClientOrigin, era: Era) {
    const { observer, tracer, speech } = observing;
    this.#observer = observer;
    this.#isTraced = tracer !== undefined;
    this.#speech = speech;
    this.#origin = origin;
    this.#introducesEachRequest = ERAS[era].begins === 'any-request';
    this.isAwaited = this.#isSeen;
  }

  /**
   * Called with each request while `isAwaited`. The description is in the `initialize` of a legacy client, and in the
   * first request of a modern client on a pipe.
   */
  sees(request: Frame): void {
    if (this.#introducesEachRequest) this.#connected(this.describe(request));
    else if (request.method === INITIALIZE) this.#introduction = introductionOf(request);
  }

  /** Returns the sender of a request that `sees` was called with. */
  describe(request: Frame): ObservedClient {
    const introduction = this.#introducesEachRequest ? modernIntroductionOf(request) : this.#introduction;
    return { ...this.#origin, ...introduction };
  }

  get #isSeen(): boolean {
    return this.#observer !== undefined || this.#isTraced;
  }

  /** Called when a legacy client has a session with this revision. */
  agreed(revision: string): void {
    if (!this.#isSeen) return;
    this.#introduction = { ...this.#introduction, revision };
    this.#connected({ ...this.#origin, ...this.#introduction });
  }

  /** Called when the client, or the server in its session, uses a deprecated feature. */
  used(feature: DeprecatedFeature): void {
    const client = { ...this.#origin, ...this.#introduction };
    this.#observer?.used(feature, { server: this.#origin.server, client });
  }

  #connected(client: ObservedClient): void {
    if (this.#state.kind !== 'unknown') return;
    this.isAwaited = false;
    this.#state = { kind: 'connected', onLeft: this.#observer?.connected(client, this.#speech.spokenTo(client)) };
  }

  /** Called when the client leaves, even if it was never reported. */
  left(reason: ErrorCode): void {
    const state = this.#state;
    this.isAwaited = false;
    this.#state = LEFT;
    if (state.kind === 'connected') state.onLeft?.(reason);
  }
}
