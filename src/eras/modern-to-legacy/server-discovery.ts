import type { BridgeError } from '../../errors.ts';
import type { InitializeResult } from '../../relay/shared/legacy/initialize-result.ts';
import { type SessionPool, SessionUser } from './pool/session-user.ts';
import type { SessionWanted } from './pool/session-wanted.ts';

/** Exactly one of the functions is called, once. */
export interface ServerDiscoveryOptions {
  readonly serves: (server: InitializeResult) => void;
  readonly lost: (reason: BridgeError) => void;
}

/** Uses a session until its server serves, only to learn what the server says of itself. */
export class ServerDiscovery extends SessionUser {
  readonly #options: ServerDiscoveryOptions;

  constructor(pool: SessionPool, wanted: SessionWanted, options: ServerDiscoveryOptions) {
    super(pool, wanted);
    this.#options = options;
  }

  opened(server: InitializeResult): void {
    this.leaveSession();
    this.#options.serves(server);
  }

  lost(reason: BridgeError): void {
    this.leaveSession();
    this.#options.lost(reason);
  }

  heard(): void {}
  serverDrained(): void {}

  /** The request was withdrawn. */
  detach(): void {
    this.leaveSession();
  }
}
