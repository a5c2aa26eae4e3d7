import type { Deps } from '../../src/deps.ts';
import type { BridgeError } from '../../src/errors.ts';
import type { Call } from '../../src/relay/call.ts';
import { CallsOverLinks } from '../../src/relay/call-over-link.ts';
import type { CallServer } from '../../src/relay/modern-call.ts';
import type {
  CallContext,
  CallDialer,
  LinkOwner,
  SessionDialer,
  UpstreamDialer,
  UpstreamLink,
} from '../../src/relay/ports.ts';
import { asSessionDialer, Connection, type Connector } from '../../src/upstream/connection.ts';
import { ChildLimit } from '../../src/upstream/stdio/child-limit.ts';
import { createStdioConnector, type StdioConnectorOptions } from '../../src/upstream/stdio/connector.ts';
import type { Frame } from '../../src/wire/frame.ts';
import { followLink } from './fake-peers.ts';

/** What a dialer of processes is told that shares nothing with others, and about which nobody asks. */
export function loneDialer(): Pick<StdioConnectorOptions, 'children' | 'failureLevel' | 'urgency' | 'trialClient'> {
  return { children: new ChildLimit(), failureLevel: 'warn', urgency: undefined, trialClient: undefined };
}

interface ScriptOptions {
  readonly deps: Deps;
  readonly args?: readonly string[];
}

/** Sessions with a script that Node runs, each with a process of its own. */
export function dialScript(path: string, options: ScriptOptions): SessionDialer {
  return asSessionDialer(connectScript(path, options));
}

/** Connections to a script that Node runs, each to a process of its own. */
export function connectScript(path: string, { deps, args = [] }: ScriptOptions): Connector {
  return createStdioConnector({
    ...loneDialer(),
    target: { kind: 'command', command: process.execPath, args: [path, ...args] },
    child: { cwd: undefined, env: { PATH: process.env.PATH ?? '' }, withheldEnv: [], pty: false },
    maxMessageBytes: 16 * 1024 * 1024,
    shutdownGraceMs: 2000,
    deps,
  });
}

/** Takes sessions for connections, where a test plays the client of a dialer. */
export function asConnector(dialer: SessionDialer): Connector {
  return {
    name: dialer.name,
    connect: () => new SessionConnection(dialer),
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
  };
}

class SessionConnection extends Connection {
  readonly #link: UpstreamLink;

  constructor(dialer: SessionDialer) {
    super();
    this.#link = followLink(this, (owner) => dialer.dial(owner));
  }

  get process() {
    return this.#link.process;
  }

  protected override write(frame: Frame, call: Call | undefined): boolean {
    return this.#link.send(frame, call);
  }

  protected override pauseSource(): void {
    this.#link.pause();
  }

  protected override resumeSource(): void {
    this.#link.resume();
  }

  protected override end(reason: BridgeError): void {
    this.#link.close(reason);
  }
}

/** A dialer for clients of one era where one for both is wanted. Requests go over sessions where there is nothing else. */
export function asUpstream(dialer: SessionDialer | CallDialer): UpstreamDialer {
  return {
    name: dialer.name,
    readiness: () => dialer.readiness(),
    close: () => dialer.close(),
    killNow: () => dialer.killNow(),
    dial(listener: LinkOwner): UpstreamLink {
      if ('dial' in dialer) return dialer.dial(listener);
      throw new Error(`${dialer.name} has no sessions`);
    },
    dialCalls(listener: LinkOwner, context: CallContext): UpstreamLink {
      return 'dialCalls' in dialer ? dialer.dialCalls(listener, context) : dialer.dial(listener);
    },
    callServer(): CallServer {
      return 'callServer' in dialer ? dialer.callServer() : new CallsOverLinks((listener) => dialer.dial(listener));
    },
  };
}
