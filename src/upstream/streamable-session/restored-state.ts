import { announcingCapabilities } from '../../mcp/translate/change-notifications.ts';
import { SET_LEVEL, SUBSCRIBE, UNSUBSCRIBE } from '../../mcp/vocabulary/methods.ts';
import { readFields } from '../../mcp/vocabulary/payload.ts';
import { SubscribedUris } from '../../mcp/vocabulary/subscribed-uris.ts';
import type { Frame } from '../../wire/frame.ts';

/** `result` of `initialize`, as far as a link reads it. */
export interface SessionOffer {
  readonly protocolVersion?: unknown;
  readonly capabilities?: Readonly<Record<string, unknown>>;
}

/** What a client has set up in its session and a new session must have, too. */
export class RestoredState {
  /** The client's own `initialize`; a new session is asked for with the same. */
  initialize: Frame | undefined = undefined;
  /** The client has said `notifications/initialized`. */
  isInitialized = false;
  /** The log level as the client gave it. */
  logLevel: string | undefined;
  readonly #subscribed = new SubscribedUris();
  #accepted: SessionOffer | undefined;

  /** What the server answered to it, when it accepted: as much of it as a new session is compared with. */
  get accepted(): SessionOffer | undefined {
    return this.#accepted;
  }

  set accepted({ protocolVersion, capabilities }: SessionOffer) {
    this.#accepted = {
      protocolVersion: name(protocolVersion),
      capabilities: announcingCapabilities(capabilities),
    };
  }

  get subscribedUris(): readonly string[] {
    return [...this.#subscribed];
  }

  /** A request of the client was answered with a result. */
  succeeded(request: Frame): void {
    const { method } = request;
    if (method !== SET_LEVEL && method !== SUBSCRIBE && method !== UNSUBSCRIBE) return;
    const { uri, level } = readFields(request, ['uri', 'level']);
    if (method === SET_LEVEL) this.logLevel = name(level);
    else if (typeof uri !== 'string') return;
    else if (method === UNSUBSCRIBE) this.#subscribed.delete(uri);
    // A client with more gets the first ones back; it can renew the others itself.
    else this.#subscribed.add(uri);
  }

  forget(uri: string): void {
    this.#subscribed.delete(uri);
  }
}

/** Characters of a revision or a level; a longer text is neither. */
const MAX_NAME_LENGTH = 64;

function name(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= MAX_NAME_LENGTH ? value : undefined;
}
