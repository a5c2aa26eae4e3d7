import type { ChildConfig, CommandTarget } from '../../config/server.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import { showFile } from '../../http/shown-url.ts';
import type { Implementation } from '../../mcp/vocabulary/meta.ts';
import type { Child, ChildListener, ChildSpec, EndReason } from '../../process/child.ts';
import { nameCommand } from '../../process/command-name.ts';
import { createPipeStarter, type StartChild } from '../../process/pipe-child.ts';
import { createPtyStarter } from '../../process/pty-child.ts';
import { resolveCommand } from '../../process/resolve-command.ts';
import { toSpawnError } from '../../process/spawn-error.ts';
import { RestartPolicy } from '../../process/supervisor.ts';
import type { ServerObserver } from '../../relay/observer.ts';
import { READY, type Readiness } from '../../relay/readiness.ts';
import { IdWarnings } from '../answer-ids.ts';
import type { Connection, Connector } from '../connection.ts';
import type { Carrier, CarrierListener } from '../duplex/carrier.ts';
import { DuplexConnection } from '../duplex/connection.ts';
import { WaitingCarrier } from '../duplex/waiting-carrier.ts';
import { Trials } from '../resilience/trials.ts';
import { tryConnection } from '../resilience/try-connection.ts';
import { StdioCarrier } from './carrier.ts';
import type { ChildLimit, ChildSlot } from './child-limit.ts';
import type { ServerProcesses } from './replacing/replaceable-carrier.ts';
import type { Restarts } from './replacing/restarts.ts';

export interface StdioConnectorOptions {
  readonly target: CommandTarget;
  readonly child: ChildConfig;
  readonly maxMessageBytes: number;
  /** Time that a process has to exit by itself when it is asked to; see process/terminate.ts. */
  readonly shutdownGraceMs: number;
  readonly deps: Deps;
  /** Shared with the other dialers of the bridge. */
  readonly children: ChildLimit;
  /** Log level for a process that fails: `debug` if the caller that dials reports the failure itself. */
  readonly failureLevel: 'warn' | 'debug';
  /** Aborted when the bridge itself is about to be killed. Undefined if there is no such signal. */
  readonly urgency: AbortSignal | undefined;
  /**
   * Client name for trial starts of a server that could not be started. Undefined means no trials: the next client
   * tries the start. Trials are needed where readiness decides whether any client is sent here.
   */
  readonly trialClient: Implementation | undefined;
  /** Undefined if nobody looks at the processes. */
  readonly observer?: ServerObserver | undefined;
  /** Restarts the processes when files change; undefined: no files are watched. */
  readonly restarts?: Restarts | undefined;
}

/**
 * Creates connections to a server that speaks over stdio. Each connection has its own process.
 * @throws BridgeError at once when the command cannot be started as it is: ERR_UPSTREAM_SPAWN when there is no such
 * program, ERR_CONFIG_OPTION when --pty is not available here
 */
export function createStdioConnector(options: StdioConnectorOptions): Connector {
  const { target, child, deps } = options;
  const file = resolveCommand({ command: target.command, cwd: child.cwd, env: child.env });
  deps.log.debug({ file: showFile(file) }, 'found the server');
  // The code that starts processes is loaded with the first process.
  const startWithPipes: StartChild = (spec, listener) => createPipeStarter(deps)(spec, listener);
  return new StdioConnector(options, child.pty ? createPtyStarter(deps) : startWithPipes);
}

class StdioConnector implements Connector, ServerProcesses {
  readonly name: string;
  readonly #options: StdioConnectorOptions;
  readonly #spec: ChildSpec;
  readonly #startChild: StartChild;
  readonly #policy: RestartPolicy;
  readonly #idWarnings: IdWarnings;
  readonly #trials: Trials | undefined;
  readonly #limit: ChildLimit;
  readonly #failureLevel: 'warn' | 'debug';
  /** Children that may still be running. */
  readonly #children = new Set<Child>();
  readonly #leaveRestarts: (() => Promise<void>) | undefined;
  #isClosed = false;

  constructor(options: StdioConnectorOptions, startChild: StartChild) {
    const { target, child, deps, shutdownGraceMs, observer } = options;
    this.name = nameCommand(target.command, target.args);
    this.#options = options;
    this.#spec = {
      name: this.name,
      command: target.command,
      args: target.args,
      cwd: child.cwd,
      env: child.env,
      withheldEnv: child.withheldEnv,
      graceMs: shutdownGraceMs,
      onStderrLine: observer && ((line) => observer.wrote(line)),
    };
    this.#idWarnings = new IdWarnings(this.name, deps.log);
    this.#limit = options.children;
    this.#failureLevel = options.failureLevel;
    this.#startChild = startChild;
    this.#trials = options.trialClient && this.#createTrials(options.trialClient);
    this.#policy = new RestartPolicy({
      name: this.name,
      clock: deps.clock,
      random: Math.random,
      noted: (outcome) => this.#trials?.[outcome](),
    });
    this.#leaveRestarts = options.restarts?.join((restarted) => {
      this.#policy.changed();
      // A restarted process shows whether the server can start, and some servers can run only once.
      if (restarted === 0) this.#trials?.changed();
    });
    options.urgency?.addEventListener('abort', () => void this.#end('urgent'), { once: true });
  }

  /**
   * Creates trial starts, which do not start a process while another one of the server runs. The running process shows
   * whether the server can start, and some servers can run only once.
   */
  #createTrials(clientInfo: Implementation): Trials {
    const { clock } = this.#options.deps;
    const connect = (): Connection => {
      if (this.#children.size > 0) throw new BridgeError('ERR_SESSION_BUSY', 'The server has been started already.');
      return this.connect();
    };
    return new Trials({ attempt: (signal) => tryConnection({ connect, clientInfo, clock, signal }), clock });
  }

  connect(): Connection {
    if (this.#isClosed) {
      throw new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down and starts no more servers.');
    }
    const slot = this.reserve();
    const { restarts } = this.#options;
    if (restarts !== undefined) return this.#open((connection) => restarts.carry(this, slot, connection));
    return slot.free === undefined
      ? this.#open((connection) => this.start(slot, connection))
      : this.#openWhenFree(slot, slot.free);
  }

  #open(carry: (connection: CarrierListener) => Carrier): DuplexConnection<Carrier> {
    const log = this.#options.deps.log.child({ child: this.name });
    return new DuplexConnection({ idWarnings: this.#idWarnings, log, carry });
  }

  /** Waits for a process that is ending, such as that of a session that has just been evicted. */
  #openWhenFree(slot: ChildSlot, free: Promise<void>): Connection {
    this.#options.deps.log.debug({ child: this.name }, 'the server is started as soon as one that is ending is gone');
    const waiting = new WaitingCarrier(() => slot.release());
    const connection = this.#open(() => waiting);
    void free.then(() => {
      if (waiting.isClosed) return;
      try {
        connection.replaceCarrier((listener) => this.start(slot, listener));
      } catch (thrown) {
        return connection.ended(toBridgeError(thrown));
      }
      if (waiting.passTo(connection.carrier)) connection.drained();
    });
    return connection;
  }

  reserve(): ChildSlot {
    return this.#limit.reserve();
  }

  start(slot: ChildSlot, connection: CarrierListener): StdioCarrier {
    const { child, maxMessageBytes, deps, observer } = this.#options;
    try {
      if (this.#isClosed) throw SHUTTING_DOWN;
      this.#policy.started();
      const carried = {
        name: this.name,
        maxMessageBytes,
        withheldEnv: child.withheldEnv,
        failureLevel: this.#failureLevel,
        policy: this.#policy,
        observer,
        clock: deps.clock,
        log: deps.log,
        start: (childListener: ChildListener) => this.#start(childListener, slot),
      };
      return new StdioCarrier(carried, connection);
    } catch (thrown) {
      slot.release();
      throw thrown;
    }
  }

  #start(listener: ChildListener, slot: ChildSlot): Child {
    try {
      const child = this.#startChild(this.#spec, listener);
      this.#children.add(child);
      if (child.pid !== undefined) this.#options.observer?.started();
      slot.fill(child);
      void child.gone.then(() => this.#children.delete(child));
      return child;
    } catch (thrown) {
      const error = toSpawnError(this.#spec, thrown);
      this.#options.deps.log[this.#failureLevel]({ child: this.name, code: error.code }, error.message);
      this.#policy.failed(error, false);
      throw error;
    }
  }

  readiness(): Readiness {
    const { attempt } = this.#policy;
    if (attempt === undefined) return READY;
    const { sinceMs, failure } = attempt;
    const refusal = this.#policy.refusal();
    if (refusal !== undefined) return { state: 'stopped', error: refusal, sinceMs, dialing: 'refused' };
    if (failure !== undefined) return { state: 'failing', error: failure, sinceMs, dialing: 'allowed' };
    // A process that its client has left before it answered says nothing.
    if ([...this.#children].every(({ isEnding }) => isEnding)) return READY;
    const error = new BridgeError('ERR_UPSTREAM_STARTING', `${this.name} is starting.`);
    return { state: 'starting', error, sinceMs, dialing: 'allowed' };
  }

  close(): Promise<void> {
    return this.#end('unwanted');
  }

  async #end(why: EndReason): Promise<void> {
    this.#isClosed = true;
    this.#trials?.close();
    await Promise.all([this.#leaveRestarts?.(), ...[...this.#children].map((child) => child.terminate(why))]);
  }

  killNow(): void {
    for (const child of this.#children) child.killNow();
  }
}
