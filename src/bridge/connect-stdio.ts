import { QueueSizes } from '../collections/queue-sizes.ts';
import type { Config } from '../config.ts';
import type { Clock, Deps } from '../deps.ts';
import { StdioEndpoint } from '../downstream/stdio/endpoint.ts';
import { assertNever, BridgeError, SHUTTING_DOWN } from '../errors.ts';
import { CallCapacity, Calls } from '../relay/calls.ts';
import { ServerSpeech } from '../relay/observer.ts';
import type { CallerDialers } from '../relay/ports.ts';
import { ChildLimit } from '../upstream/stdio/child-limit.ts';
import { describeCallers } from './caller-policy.ts';
import { createDialers, nameServer } from './create-dialer.ts';
import { createSessions } from './create-registries.ts';
import { createToolView } from './create-tool-view.ts';
import { Guards } from './guards.ts';
import { createObservation, type Observation } from './observing/observation.ts';
import type { BridgeDeps, ClientPipes, RunningBridge } from './running-bridge.ts';

/**
 * Time from end of input plus signal until the server is killed. A client that does both kills the bridge soon after,
 * and no process would be left to end the server: official SDKs wait 2 s, or 1 s after a mere probe, which does both at
 * once.
 */
const LAST_CHANCE_MS = 500;
/**
 * Interval of the check for an orphaned bridge. A pipe shows that its reader is gone only on a write, and a call may be
 * silent for minutes.
 */
const ORPHAN_CHECK_MS = 1000;

/** Runs `mcp-portage connect`: one client on a pair of pipes. docs/internals/decisions/0016 tells when it ends. */
export async function connectStdio(config: Config, deps: BridgeDeps, pipes: ClientPipes): Promise<RunningBridge> {
  const { input, output, isOrphaned } = pipes;
  const urgency = new AbortController();
  const { servers, limits: processLimits } = config;
  const [server] = servers;
  const { shutdownGraceMs } = processLimits;
  const observation = await createObservation({
    config: config.observation,
    clients: 'one',
    sunset: undefined,
    look: async () => [],
    deps,
  });
  const name = nameServer(server);
  observation.serves([{ server: name, transport: 'stdio', path: undefined, sunset: undefined }]);
  const dial = server.target.kind === 'aggregate' ? dialAll : dialOne;
  const { dialers, calls, close: closeServers, killNow } = await dial(config, observation, urgency.signal, deps);
  const sessions = createSessions(server, { dialers, calls, deps });
  const { maxMessageBytes, maxLineBytes, maxJsonDepth, requestTimeoutMs } = server.limits;
  const limits = { maxMessageBytes, maxSentBytes: maxLineBytes, maxJsonDepth, untakenTimeoutMs: requestTimeoutMs };
  const endpoint = new StdioEndpoint({ input, output, sessions, deps, ...limits });
  const ending = new StdioEnding({
    clock: deps.clock,
    graceMs: shutdownGraceMs,
    answer: () => sessions.drain().then(() => endpoint.flush()),
    async close() {
      sessions.close(SHUTTING_DOWN);
      endpoint.close(SHUTTING_DOWN);
      await closeServers();
      await observation.close();
    },
  });
  let pressed = (): void => {};
  const isPressed = new Promise<void>((resolve) => {
    pressed = resolve;
  });
  // The end of the pipe and the signal may arrive in either order.
  void Promise.all([endpoint.clientGone, isPressed]).then(() => {
    ending.close();
    urgency.abort();
    deps.clock.after(LAST_CHANCE_MS, killNow);
  });
  void endpoint.clientGone.then(() => {
    const stop = deps.clock.every(ORPHAN_CHECK_MS, () => {
      if (isOrphaned()) endpoint.readerGone();
    });
    void ending.finished.then(stop);
  });
  void endpoint.unread.then(() => {
    deps.log.debug('the client is gone; running calls may finish');
    ending.leave();
  });
  const shutdown = (signal: NodeJS.Signals): Promise<void> => {
    // A terminal sends its signals to the client and the bridge alike, so the end of the client after one is no sign of
    // urgency.
    if (signal === 'SIGTERM' || ending.isLeaving) pressed();
    ending.leave();
    return ending.finished;
  };
  const end = async (): Promise<BridgeError | undefined> => {
    const ended = await endpoint.ended;
    switch (ended.kind) {
      case 'input':
        deps.log.debug('the client has ended its input; what was asked is still answered');
        ending.answer();
        break;
      case 'untaken': {
        const error = untaken(ended.bytes, requestTimeoutMs);
        deps.log.warn({ code: error.code }, error.message);
        // Open calls have had the same time.
        ending.close();
        break;
      }
      case 'output':
      case 'server':
      case 'unreadable':
      case 'crowded':
        ending.leave();
        break;
      default:
        assertNever(ended);
    }
    await ending.finished;
    return ended.kind === 'server' ? ended.reason : undefined;
  };
  const reopen = (): void => observation.reopen();
  return {
    urls: [],
    servers: [],
    statusUrl: undefined,
    update: undefined,
    reopen,
    shutdown,
    killNow,
    ended: end(),
  };
}

/** The server of the client, with the means to end it. */
interface ClientsServer {
  readonly dialers: CallerDialers;
  readonly calls: Calls;
  readonly close: () => Promise<void>;
  readonly killNow: () => void;
}

async function dialOne(
  { listener, servers: [server], limits }: Config,
  { observer, tracer, refusal, tapsOf }: Observation,
  urgency: AbortSignal,
  deps: Deps,
): Promise<ClientsServer> {
  const name = nameServer(server);
  const observing = { observer, tracer, speech: new ServerSpeech(), server: name, taps: tapsOf?.(name) };
  const guards = new Guards(deps);
  const dialers = await createDialers(
    {
      ...server,
      callers: describeCallers(listener, server),
      children: new ChildLimit(limits.maxChildren),
      shutdownGraceMs: limits.shutdownGraceMs,
      urgency,
      openShared: undefined,
      callerTokens: undefined,
      bound: () => [],
      outcomes: undefined,
      waits: 'client',
      members: undefined,
      observing,
      createGuard: await guards.of(server, deps),
      queues: new QueueSizes(),
    },
    deps,
  );
  const calls = new Calls({
    clock: deps.clock,
    ...new CallCapacity(limits.maxInFlight).share(),
    ...observing,
    tools: createToolView(server, deps),
    maxResultBytes: server.limits.maxResultBytes,
    refusal,
  });
  const close = async (): Promise<void> => {
    await dialers.close();
    await guards.close();
  };
  return { dialers, calls, close, killNow: () => dialers.killNow() };
}

/** Dials the aggregate, which alone has its members. */
async function dialAll(
  config: Config,
  observation: Observation,
  urgency: AbortSignal,
  deps: Deps,
): Promise<ClientsServer> {
  const { dialAggregate } = await import('./stdio-members.ts');
  const { dialed, members } = await dialAggregate(config, { observation, urgency }, deps);
  return {
    dialers: dialed.sessionDialers,
    calls: dialed.calls,
    close: async () => {
      await dialed.close();
      await members.close(SHUTTING_DOWN);
    },
    killNow: () => {
      dialed.sessionDialers.killNow();
      members.killNow();
    },
  };
}

function untaken(bytes: number, timeoutMs: number): BridgeError {
  const message = `The client has ended its input, and for ${timeoutMs} ms the server has taken nothing of the last ${bytes} bytes of it, which are dropped; for a server that needs longer raise --request-timeout.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message);
}

// ---- The end

interface StdioEndingParts {
  readonly clock: Clock;
  /** Time for open calls after a signal, or once the client no longer reads. */
  readonly graceMs: number;
  /**
   * Resolves when all calls are answered and the answers have left for the client. It has no time limit beyond those of
   * the calls.
   */
  readonly answer: () => Promise<void>;
  /** Releases the client and the server. */
  readonly close: () => Promise<void>;
}

/**
 * - `open`: the client may send more.
 * - `answering`: the client has ended its input but still reads. Open calls keep their usual time limits.
 * - `leaving`: a signal arrived, the client no longer reads, or the server has ended. Open calls have the grace time
 *   from then on.
 * - `closing`: only the end of the server is awaited.
 */
type Stage = 'open' | 'answering' | 'leaving' | 'closing';

/** Ends a bridge with one client on a pair of pipes. Each step may be requested at any time, and more than once. */
class StdioEnding {
  readonly #parts: StdioEndingParts;
  #stage: Stage = 'open';
  #stopWaiting = (): void => {};
  readonly #waited = new Promise<void>((resolve) => {
    this.#stopWaiting = resolve;
  });
  #resolveFinished: (finished: Promise<void>) => void = () => {};
  /** Resolves when the server and its connection have ended. */
  readonly finished = new Promise<void>((resolve) => {
    this.#resolveFinished = resolve;
  });

  constructor(parts: StdioEndingParts) {
    this.#parts = parts;
  }

  /** True once the grace time is running or is over. */
  get isLeaving(): boolean {
    return this.#stage === 'leaving' || this.#stage === 'closing';
  }

  /** Takes no new calls, and ends when all open ones are answered. */
  answer(): void {
    if (this.#stage === 'open') this.#begin('answering');
  }

  /** Like `answer`, but limited to the grace time, which starts with the first call of this method. */
  leave(): void {
    if (this.isLeaving) return;
    const { clock, graceMs } = this.#parts;
    const clear = clock.after(graceMs, () => this.#stopWaiting());
    void this.#waited.then(clear);
    if (this.#stage === 'open') this.#begin('leaving');
    this.#stage = 'leaving';
  }

  /** Ends without waiting for open calls. */
  close(): void {
    this.#stopWaiting();
    if (this.#stage === 'open') this.#begin('leaving');
  }

  #begin(stage: Stage): void {
    this.#stage = stage;
    this.#resolveFinished(this.#run());
  }

  async #run(): Promise<void> {
    const { answer, close } = this.#parts;
    await Promise.race([answer(), this.#waited]);
    this.#stage = 'closing';
    this.#stopWaiting();
    await close();
  }
}
