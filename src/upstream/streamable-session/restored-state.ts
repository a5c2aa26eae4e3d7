import { SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../mcp/methods.ts';
import { SubscribedUris } from '../../mcp/subscribed-uris.ts';
import type { Frame } from '../../wire/frame.ts';

/** `result` of `initialize`, as far as a link reads it. */
export interface InitializeResult {
  readonly protocolVersion?: unknown;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/** What a client has set up in its session and a new session must have, too. */
export class RestoredState {
  /** The client's own `initialize`; a new session is asked for with the same. */
  initialize: Frame | undefined = undefined;
  /** What the server answered to it, when it accepted. */
  accepted: InitializeResult | undefined = undefined;
  /** The client has said `notifications/initialized`. */
  isInitialized = false;
  /** As the client gave it. */
  logLevel: unknown;
  readonly #subscribed = new SubscribedUris();

  get subscribedUris(): readonly string[] {
    return [...this.#subscribed];
  }

  /** A request of the client was answered with a result. */
  succeeded(request: Frame): void {
    const { method } = request;
    if (method !== SET_LEVEL && method !== SUBSCRIBE && method !== UNSUBSCRIBE) return;
    const { uri, level } = (request.json() as { params?: { uri?: unknown; level?: unknown } }).params ?? {};
    if (method === SET_LEVEL) this.logLevel = level;
    else if (typeof uri !== 'string') return;
    else if (method === UNSUBSCRIBE) this.#subscribed.delete(uri);
    // A client with more gets the first ones back; it can renew the others itself.
    else this.#subscribed.add(uri);
  }

  forget(uri: string): void {
    this.#subscribed.delete(uri);
  }
}
