import type { DownstreamPeer } from '../ports.ts';
import type { Relay } from '../relay.ts';
import type { SessionUse } from './abandoned-sessions.ts';
import type { SessionState } from './session-state.ts';

/** A client's session, in the sense of the protocol. */
export interface Session<Peer extends DownstreamPeer = DownstreamPeer> {
  /**
   * 128 random bits. A client gets back into its session with this id and the credentials of the caller who opened it.
   */
  readonly id: string;
  readonly peer: Peer;
  readonly relay: Relay;
}

interface EntryParts {
  readonly principal: string | undefined;
  readonly state: SessionState | undefined;
  readonly nowMs: number;
}

/** A session in the registry, with the times that tell if it is still in use. */
export class SessionEntry implements Session, SessionUse {
  readonly id: string;
  readonly peer: DownstreamPeer;
  readonly relay: Relay;
  readonly principal: string | undefined;
  /** Undefined if the session is not stored. */
  readonly state: SessionState | undefined;
  hasReturned = false;
  /** Time when the client was last connected or sent something. */
  lastSeenMs: number;
  lastUsedMs: number;

  constructor(session: Session, { principal, state, nowMs }: EntryParts) {
    this.id = session.id;
    this.peer = session.peer;
    this.relay = session.relay;
    this.principal = principal;
    this.state = state;
    this.lastSeenMs = nowMs;
    this.lastUsedMs = nowMs;
  }

  get isUnattended(): boolean {
    return !this.peer.isConnected && this.relay.openCalls === 0;
  }

  /** Called when the client of the session has sent something. */
  used(nowMs: number): void {
    this.hasReturned = true;
    this.lastSeenMs = nowMs;
    this.lastUsedMs = nowMs;
  }

  /** Called periodically, because a lasting connection or call causes no event. */
  look(nowMs: number): void {
    if (this.peer.isConnected) this.lastSeenMs = nowMs;
    if (!this.isUnattended) this.lastUsedMs = nowMs;
  }
}
