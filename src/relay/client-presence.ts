/** The client of a session or a pipe, as observers and traces are told of it. */
import type { ErrorCode } from '../errors.ts';
import { readRequestMetadata } from '../mcp/classify/request-metadata.ts';
import { INITIALIZE } from '../mcp/vocabulary/methods.ts';
import { asFields, readField } from '../mcp/vocabulary/payload.ts';
import { ERAS, type Era } from '../mcp/vocabulary/revisions.ts';
import type { Frame } from '../wire/frame.ts';
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
 * The observer's knowledge of a client.
 * - `unknown`: the observer has not been told of the client.
 * - `connected`: the observer has been told, and will be told when the client leaves.
 * - `left`: the observer is told nothing more.
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
  /** The name of the server, as its observer knows it. */
  readonly server: string;
}

/** The client of a session or a pipe as an observer is told of it. Without an observer or a tracer no message is read. */
export class ClientPresence {
  readonly #observer: Observer | undefined;
  readonly #isTraced: boolean;
  readonly #origin: ClientOrigin;
  /** True if each request of the client says who it is. */
  readonly #introducesEachRequest: boolean;
  /** What the server speaks that it is joined with. */
  readonly #speech: ServerSpeech;
  /** What a legacy client has said of itself. */
  #introduction = UNKNOWN_LEGACY;
  #state: PresenceState = UNKNOWN;
  /** Whether the next request may say who the client is: somebody wants to know, and nobody has been told yet. */
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

  /** A request comes, while `isAwaited`. The first says who the client is; the first of a pipe is how its modern client comes. */
  sees(request: Frame): void {
    if (this.#introducesEachRequest) this.#connected(this.describe(request));
    else if (request.method === INITIALIZE) this.#introduction = introductionOf(request);
  }

  /** Who sends this request, which has been seen. */
  describe(request: Frame): ObservedClient {
    const introduction = this.#introducesEachRequest ? modernIntroductionOf(request) : this.#introduction;
    return { ...this.#origin, ...introduction };
  }

  get #isSeen(): boolean {
    return this.#observer !== undefined || this.#isTraced;
  }

  /** A legacy client has a session, of this revision. */
  agreed(revision: string): void {
    if (!this.#isSeen) return;
    this.#introduction = { ...this.#introduction, revision };
    this.#connected({ ...this.#origin, ...this.#introduction });
  }

  /** The client, or the server in its session, uses what is deprecated. */
  used(feature: DeprecatedFeature): void {
    const client = { ...this.#origin, ...this.#introduction };
    this.#observer?.used(feature, { server: this.#origin.server, client });
  }

  #connected(client: ObservedClient): void {
    if (this.#state.kind !== 'unknown') return;
    this.isAwaited = false;
    this.#state = { kind: 'connected', onLeft: this.#observer?.connected(client, this.#speech.spokenTo(client)) };
  }

  /** May be called for a client that nobody was told of. */
  left(reason: ErrorCode): void {
    const state = this.#state;
    this.isAwaited = false;
    this.#state = LEFT;
    if (state.kind === 'connected') state.onLeft?.(reason);
  }
}
