/** The two ends of a relay without sockets or processes: they keep what they are given. */
import { pino } from 'pino';
import type { Deps } from '../../src/deps.ts';
import type { BridgeError } from '../../src/errors.ts';
import type { Revision } from '../../src/mcp/vocabulary/revisions.ts';
import type { Call, Lane } from '../../src/relay/call.ts';
import { CallsOverLinks } from '../../src/relay/call-over-link.ts';
import type { CallServer } from '../../src/relay/modern-call.ts';
import type {
  CallContext,
  DownstreamPeer,
  LinkOwner,
  ServerFault,
  ServerListener,
  ServerProcess,
  UpstreamDialer,
  UpstreamLink,
} from '../../src/relay/ports.ts';
import type { Readiness } from '../../src/relay/readiness.ts';
import type { SessionState } from '../../src/relay/sessions/session-state.ts';
import type { Frame } from '../../src/wire/frame.ts';
import type { SoleCallContext } from './dial-call.ts';
import { FakeClock } from './fake-clock.ts';

/** A message somebody was given, with the call it was said to belong to. */
export interface Sent {
  readonly frame: Frame;
  readonly call: Call | undefined;
}

/** What was sent, parsed. */
export function messagesOf(sent: readonly Sent[]): readonly unknown[] {
  return sent.map(({ frame }) => frame.json());
}

export class FakeLane implements Lane {
  isOpen = true;
  lostAtMs: number | undefined;
}

export class FakePeer implements DownstreamPeer {
  isConnected = true;
  hasLeft = false;
  /** What `send` answers. */
  hasCapacity = true;
  isPaused = false;
  readonly sent: Sent[] = [];
  readonly released: Call[] = [];
  readonly revisions: Revision[] = [];
  readonly closedWith: BridgeError[] = [];
  /** Called with each message, as a real client would react to it. */
  onSend: (sent: Sent) => void = () => {};

  /** Everything since the last look. */
  take(): readonly Sent[] {
    return this.sent.splice(0);
  }

  send(frame: Frame, call?: Call): boolean {
    const sent = { frame, call };
    this.sent.push(sent);
    this.onSend(sent);
    return this.hasCapacity;
  }

  release(call: Call): void {
    this.released.push(call);
  }

  negotiated(revision: Revision): void {
    this.revisions.push(revision);
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  close(reason: BridgeError): void {
    this.closedWith.push(reason);
  }
}

/**
 * Nothing is left of a process as soon as its link ends. Whoever asks hears so in the same turn, because the tests step a
 * clock and do not wait.
 */
export const GONE_AT_ONCE = {
  // biome-ignore lint/suspicious/noThenProperty: it stands in for a promise
  then: (settled: () => void): void => settled(),
} as unknown as Promise<void>;

export class FakeLink implements UpstreamLink {
  listener: ServerListener | undefined;
  /** What `send` answers. */
  hasCapacity = true;
  isPaused = false;
  /** Set where the server is to pass for a process. */
  process: ServerProcess | undefined;
  readonly sent: Sent[] = [];
  readonly closedWith: BridgeError[] = [];
  /** Called with each message, as a real server would react to it. */
  onSend: (sent: Sent) => void = () => {};

  /** Everything since the last look. */
  take(): readonly Sent[] {
    return this.sent.splice(0);
  }

  /** Makes it a link to a process that was heard of now. */
  heardAt(lastHeardMs: number): void {
    this.process = { gone: GONE_AT_ONCE, ...this.process, lastHeardMs };
  }

  send(frame: Frame, call?: Call): boolean {
    const sent = { frame, call };
    this.sent.push(sent);
    this.onSend(sent);
    return this.hasCapacity;
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  close(reason: BridgeError): void {
    this.closedWith.push(reason);
  }
}

/** Makes it a link to a process, of which something is left until it is ended. */
export function remainsOf(link: Pick<FakeLink, 'process'>): { readonly end: () => Promise<void> } {
  let vanish = (): void => {};
  const gone = new Promise<void>((resolve) => {
    vanish = resolve;
  });
  link.process = { lastHeardMs: 0, gone };
  return {
    end: () => {
      vanish();
      return gone;
    },
  };
}

/** Keeps what a link tells the client's side. */
export class FakeServerListener implements LinkOwner {
  readonly received: Sent[] = [];
  readonly faults: ServerFault[] = [];
  readonly closedWith: BridgeError[] = [];
  drains = 0;
  /** The link that took the place of the dialed one. */
  found: UpstreamLink | undefined;
  /** Called with each message. */
  onFrame: (sent: Sent) => void = () => {};

  serverFound(link: UpstreamLink): void {
    this.found = link;
  }

  fromServer(frame: Frame, call?: Call): void {
    const sent = { frame, call };
    this.received.push(sent);
    this.onFrame(sent);
  }

  serverFault(fault: ServerFault): void {
    this.faults.push(fault);
  }

  serverDrained(): void {
    this.drains += 1;
  }

  serverClosed(reason: BridgeError): void {
    this.closedWith.push(reason);
  }
}

/** Dials for a listener. The returned link passes on to the link that takes the place of the dialed one. */
export function followLink(listener: ServerListener, dial: (owner: LinkOwner) => UpstreamLink): UpstreamLink {
  let current: UpstreamLink;
  const owner: LinkOwner = {
    serverFound: (link) => {
      current = link;
    },
    fromServer: (frame, call) => listener.fromServer(frame, call),
    serverFault: (fault) => listener.serverFault(fault),
    serverDrained: () => listener.serverDrained(),
    serverClosed: (reason) => listener.serverClosed(reason),
  };
  current = dial(owner);
  return {
    listener,
    get process() {
      return current.process;
    },
    send: (frame, call) => current.send(frame, call),
    pause: () => current.pause(),
    resume: () => current.resume(),
    close: (reason) => current.close(reason),
  };
}

/** One connection a dialer made, with both its ends. */
export interface Dialed {
  readonly link: FakeLink;
  /** Who hears what the server says: whoever it was handed to last. */
  readonly listener: ServerListener;
  /** What is kept up to date of the session. */
  readonly session: SessionState | undefined;
}

export class FakeDialer implements UpstreamDialer {
  readonly name = 'fake-server';
  readonly dialed: Dialed[] = [];
  /** What `dial` throws, when set. */
  failure: BridgeError | undefined;
  readinessNow: Readiness = { state: 'ready' };
  isClosed = false;
  isKilled = false;
  /** Called with each new connection, before `dial` returns. */
  onDial: (dialed: Dialed) => void = () => {};

  /** The connection made last. */
  get latest(): Dialed {
    const latest = this.dialed.at(-1);
    if (latest === undefined) throw new Error('nothing was dialed yet');
    return latest;
  }

  dial(listener: ServerListener, session?: SessionState): UpstreamLink {
    if (this.failure !== undefined) throw this.failure;
    const link = new FakeLink();
    link.listener = listener;
    const dialed: Dialed = {
      link,
      get listener() {
        return link.listener ?? listener;
      },
      session,
    };
    this.dialed.push(dialed);
    this.onDial(dialed);
    return dialed.link;
  }

  dialCalls(listener: ServerListener, _context?: CallContext): UpstreamLink {
    return this.dial(listener);
  }

  callServer(): CallServer {
    if (this.failure !== undefined) throw this.failure;
    return new CallsOverLinks((listener, { principal, lane }, metadata) =>
      this.dialCall(listener, { principal, metadata, headers: lane.headers }),
    );
  }

  /** Called for each request that comes alone, once it has come. */
  dialCall(listener: ServerListener, _context: SoleCallContext): UpstreamLink {
    return this.dial(listener);
  }

  readiness(): Readiness {
    return this.readinessNow;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return Promise.resolve();
  }

  killNow(): void {
    this.isKilled = true;
  }
}

/** Silent, with ids that count and a clock that stands still. */
export function createFakeDeps(): Deps & { readonly clock: FakeClock } {
  let ids = 0;
  return {
    log: pino({ level: 'silent' }),
    clock: new FakeClock(),
    wallClock: () => 0,
    randomId: () => `id-${++ids}`,
  };
}
