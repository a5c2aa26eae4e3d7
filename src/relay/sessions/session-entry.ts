import type { DownstreamPeer, UpstreamLink } from '../ports.ts';
import type { Relay } from '../relay.ts';
import type { SessionUse } from './abandoned-sessions.ts';
import type { SessionState } from './session-state.ts';

/** One client's session: the protocol's, not a connection. */
export interface Session<Peer extends DownstreamPeer = DownstreamPeer> {
  /** 128 random bits. Together with being the one who opened it, knowing it is what lets a client back in. */
  readonly id: string;
  readonly peer: Peer;
  readonly relay: Relay;
}

interface EntryParts {
  readonly link: UpstreamLink;
  readonly principal: string | undefined;
  readonly state: SessionState | undefined;
  readonly nowMs: number;
}

/** A session as its registry keeps it: with what tells whether anybody needs it still. */
export class SessionEntry implements Session, SessionUse {
  readonly id: string;
  readonly peer: DownstreamPeer;
  readonly relay: Relay;
  readonly link: UpstreamLink;
  readonly principal: string | undefined;
  /** Undefined: it is not stored. */
  readonly state: SessionState | undefined;
  hasReturned = false;
  /** When its client was connected or sent something. */
  lastSeenMs: number;
  lastUsedMs: number;

  constructor(session: Session, { link, principal, state, nowMs }: EntryParts) {
    this.id = session.id;
    this.peer = session.peer;
    this.relay = session.relay;
    this.link = link;
    this.principal = principal;
    this.state = state;
    this.lastSeenMs = nowMs;
    this.lastUsedMs = nowMs;
  }

  get isUnattended(): boolean {
    return !this.peer.isConnected && this.relay.openExchanges === 0;
  }

  /** Called when the client of the session gave a sign of life. */
  used(nowMs: number): void {
    this.hasReturned = true;
    this.lastSeenMs = nowMs;
    this.lastUsedMs = nowMs;
  }

  /** Called every now and then: what lasts is seen, not told. */
  look(nowMs: number): void {
    if (this.peer.isConnected) this.lastSeenMs = nowMs;
    if (!this.isUnattended) this.lastUsedMs = nowMs;
  }
}
