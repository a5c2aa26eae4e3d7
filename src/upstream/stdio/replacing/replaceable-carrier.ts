import type { Logger } from 'pino';
import { ByteQueue, frameBytes } from '../../../collections/bounded-collections.ts';
import type { Deps } from '../../../deps.ts';
import { assertNever, BridgeError, toBridgeError } from '../../../errors.ts';
import type { ListenFilter } from '../../../mcp/translate/listen-filter.ts';
import { createModernRequest } from '../../../mcp/vocabulary/discover.ts';
import { type Implementation, META_SUBSCRIPTION_ID } from '../../../mcp/vocabulary/meta.ts';
import {
  CANCELED,
  DISCOVER,
  INITIALIZE,
  isClientNotification,
  RESOURCE_UPDATED,
} from '../../../mcp/vocabulary/methods.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { LATEST_MODERN_REVISION } from '../../../mcp/vocabulary/revisions.ts';
import { rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import type { Call, ClientMessage } from '../../../relay/call.ts';
import type { ServerFault, ServerProcess } from '../../../relay/ports.ts';
import { Restoration, type RestoredConnection, type TimeLimit } from '../../../relay/sessions/restore-session.ts';
import type { Frame, JsonRpcId } from '../../../wire/frame.ts';
import { errorFrame, notificationFrame, requestFrame } from '../../../wire/write-message.ts';
import type { Carrier, CarrierListener } from '../../duplex/carrier.ts';
import type { ChildSlot } from '../child-limit.ts';
import { canceledBy, OpenMessages } from './open-messages.ts';
import { changesBetween, type ListDigests, readLists } from './shown-lists.ts';

/**
 * Messages that may wait for the next process. Clients go on calling while it starts, which takes a second or two; the
 * limits are those of a session that is restored.
 */
const RESTART_LIMITS = { maxItems: 1024, maxBytes: 8 * 1024 * 1024 };
/** Time for a process that is about to end to show its lists. A server that works answers in milliseconds. */
const MAX_LISTING_MS = 1000;

const IDLE = { kind: 'idle' } as const;

/**
 * Time that a process has to start before a further change ends it. Without it, a program that writes all the time would
 * keep a slow server from ever serving; the change is made up for by one more restart.
 */
const MIN_START_MS = 10_000;

/** The pipes of one process. */
export interface ProcessCarrier extends Carrier {
  readonly process: ServerProcess;
  /** Ends the process, in whose place another one follows. The listener is called no more. */
  replace(): void;
}

/** Starts the processes of one server. */
export interface ServerProcesses {
  readonly name: string;
  /** Throws what `ChildLimit.reserve` throws. */
  reserve(): ChildSlot;
  /** Starts a process in this slot, which is released if that fails. Throws a BridgeError. */
  start(slot: ChildSlot, listener: CarrierListener): ProcessCarrier;
}

export interface ReplaceableOptions {
  readonly processes: ServerProcesses;
  /** Time for open calls to end before their process is replaced. */
  readonly graceMs: number;
  /** Time for the next process to answer the handshake; 0: no limit. */
  readonly handshakeTimeoutMs: number;
  readonly clientInfo: Implementation;
  readonly deps: Pick<Deps, 'clock' | 'log' | 'randomId'>;
  /** Called once, when the connection has ended. */
  readonly ended: (carrier: ReplaceableCarrier) => void;
}

/**
 * The outcome of a restart: the next process serves, it could not be started, or the connection has ended meanwhile.
 */
export type RestartOutcome =
  | { readonly kind: 'ready' | 'over' }
  | { readonly kind: 'failed'; readonly error: BridgeError };

/**
 * - `running`: messages pass.
 * - `draining`: a restart has begun. Open calls may end, and further ones wait.
 * - `waiting`: the next process starts when nothing of the last one is left and its slot is free. Messages wait.
 * - `restoring`: the next process is brought to the state of the session. Messages wait.
 * - `down`: the process has ended by itself, or the next one could not be started. A call starts one, and so does the
 *   next restart.
 * - `over`: the connection has ended.
 */
type State =
  | { readonly kind: 'running'; readonly carrier: ProcessCarrier }
  | { readonly kind: 'draining'; readonly carrier: ProcessCarrier; readonly cancel: () => void }
  | { readonly kind: 'waiting'; readonly slot: ChildSlot }
  | {
      readonly kind: 'restoring';
      readonly carrier: ProcessCarrier;
      readonly startedMs: number;
      /** True if the server has changed since the process was started. */
      readonly isOutdated: boolean;
      readonly cancel: () => void;
    }
  | { readonly kind: 'down' | 'over' };

/**
 * Carries the messages of one connection to a process that can be replaced. The connection and all above it notice
 * nothing but a pause: the next process gets the handshake, the log level and the subscriptions of the one before. See
 * docs/internals/decisions/0062-watch.md.
 */
export class ReplaceableCarrier implements Carrier, CarrierListener, RestoredConnection {
  readonly delivery = 'pipe';
  readonly timeLimit: TimeLimit;
  readonly log: Logger;
  readonly #options: ReplaceableOptions;
  readonly #listener: CarrierListener;
  readonly #open = new OpenMessages();
  readonly #waiting = new ByteQueue<ClientMessage>(RESTART_LIMITS, frameBytes);
  /** Unanswered requests of the bridge itself to the current process. */
  readonly #own = new Map<JsonRpcId, (answer: Frame) => void>();
  /** The process that was started last, which may have ended. */
  #process: ServerProcess | undefined;
  #state: State;
  #isPaused = false;
  /** The lists that clients may have, as far as they are known. */
  #shown: ListDigests = new Map();
  /**
   * - `idle`: no list is being read.
   * - `reading`: the lists of a process that is about to end are read. They are what clients have.
   * - `comparing`: the lists of the next process are read, and compared with those that clients have.
   */
  #lists: { readonly kind: 'idle' | 'comparing' } | { readonly kind: 'reading'; readonly read: ListDigests } = IDLE;
  /** Called with the outcome of the current restart. */
  #awaiting: ((outcome: RestartOutcome) => void)[] = [];
  /** Called with the outcome of the restart after it. */
  #awaitingNext: ((outcome: RestartOutcome) => void)[] = [];

  /** Throws what `ServerProcesses.start` throws. */
  constructor(options: ReplaceableOptions, slot: ChildSlot, listener: CarrierListener) {
    const { processes, handshakeTimeoutMs: timeoutMs, deps } = options;
    this.#options = options;
    this.#listener = listener;
    this.log = deps.log.child({ child: processes.name });
    this.timeLimit = { clock: deps.clock, timeoutMs, exceeded: () => timedOut(processes.name, timeoutMs) };
    if (slot.free === undefined) {
      const carrier = processes.start(slot, this);
      this.#process = carrier.process;
      this.#state = { kind: 'running', carrier };
    } else {
      this.#state = { kind: 'waiting', slot };
      void slot.free.then(() => this.#startIn(slot));
    }
  }

  get process(): ServerProcess | undefined {
    return this.#process;
  }

  // ---- from the owner of the processes

  /** True if a restart has begun whose process is not started yet, and will be one of the server as it is now. */
  get isAboutToStart(): boolean {
    return this.#state.kind === 'draining' || this.#state.kind === 'waiting';
  }

  /** Replaces the process. Resolves when the next one serves, or when there is none. */
  restart(): Promise<RestartOutcome> {
    const state = this.#state;
    if (state.kind === 'over') return Promise.resolve({ kind: 'over' });
    const awaiting = state.kind === 'restoring' ? this.#awaitingNext : this.#awaiting;
    const outcome = new Promise<RestartOutcome>((resolve) => awaiting.push(resolve));
    switch (state.kind) {
      case 'running':
        if (this.#open.era === undefined) this.#replace(state.carrier);
        else this.#drain(state.carrier);
        break;
      case 'restoring':
        this.#outdate(state);
        break;
      case 'down':
        this.#startNext();
        break;
      case 'draining':
      case 'waiting':
        break;
      default:
        assertNever(state.kind);
    }
    return outcome;
  }

  #outdate(state: Extract<State, { kind: 'restoring' }>): void {
    if (state.isOutdated) return;
    const { clock } = this.#options.deps;
    const cancelTimer = clock.after(Math.max(0, state.startedMs + MIN_START_MS - clock.now()), () => {
      state.cancel();
      this.#awaiting.push(...this.#awaitingNext.splice(0));
      this.#replace(state.carrier);
    });
    const cancel = (): void => {
      state.cancel();
      cancelTimer();
    };
    this.#state = { ...state, isOutdated: true, cancel };
  }

  // ---- from the connection

  get isFull(): boolean {
    return this.#state.kind === 'running' ? this.#state.carrier.isFull : this.#waiting.isFull;
  }

  send(frame: Frame, call: Call | undefined): boolean {
    switch (frame.kind) {
      case 'request':
        return this.#request({ frame, call });
      case 'notification':
        return this.#notify({ frame, call });
      case 'result':
      case 'error':
        return this.#answer(frame, call);
      default:
        return assertNever(frame.kind);
    }
  }

  #request(message: ClientMessage): boolean {
    const state = this.#state;
    if (state.kind === 'running') return this.#pass(state.carrier, message);
    if (state.kind === 'over') return true;
    if (this.#waiting.isFull) {
      queueMicrotask(() => this.#refuse(message.frame.id, this.#tooManyWait()));
      return false;
    }
    this.#waiting.add(message);
    if (state.kind === 'down') this.#startNext();
    return !this.#waiting.isFull;
  }

  #pass(carrier: ProcessCarrier, message: ClientMessage): boolean {
    this.#open.requested(message);
    return carrier.send(message.frame, message.call);
  }

  #notify(message: ClientMessage): boolean {
    const { frame } = message;
    const canceled = canceledBy(frame);
    const isWaiting = ({ frame: other }: ClientMessage): boolean => other.kind === 'request' && other.id === canceled;
    // A request that still waits is withdrawn with its cancellation, and neither is sent.
    if (canceled !== undefined && this.#waiting.removeFirst(isWaiting) !== undefined) return true;
    this.#open.notified(frame);
    const state = this.#state;
    if (state.kind === 'running' || state.kind === 'draining') {
      const hasCapacity = state.carrier.send(frame, message.call);
      this.#checkDrained();
      return hasCapacity;
    }
    // The notifications of the specification are about what a process that is gone has said or asked. The next one gets
    // the end of the handshake as a part of its session.
    if (state.kind === 'over' || isClientNotification(frame.method ?? '') || this.#waiting.isFull) return true;
    this.#waiting.add(message);
    return !this.#waiting.isFull;
  }

  /** An answer goes to the process that has asked, and to no other. */
  #answer(frame: Frame, call: Call | undefined): boolean {
    const state = this.#state;
    const answer = this.#open.toProcess(frame);
    if (answer === undefined || !('carrier' in state)) {
      this.log.debug({ method: call?.method }, 'dropped the answer to a question of a process that is gone');
      return true;
    }
    return state.carrier.send(answer, call);
  }

  pause(): void {
    this.#isPaused = true;
    // Until the session is restored, the answers to its handshake have to be read.
    if (this.#state.kind === 'running' || this.#state.kind === 'draining') this.#state.carrier.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#state.kind === 'running' || this.#state.kind === 'draining') this.#state.carrier.resume();
  }

  close(reason: BridgeError): void {
    const state = this.#state;
    this.#end();
    if ('cancel' in state) state.cancel();
    if (state.kind === 'waiting') state.slot.release();
    if ('carrier' in state) state.carrier.close(reason);
  }

  #end(): void {
    this.#state = { kind: 'over' };
    this.#own.clear();
    this.#waiting.takeAll();
    this.#settle({ kind: 'over' });
    this.#settle({ kind: 'over' });
    this.#options.ended(this);
  }

  // ---- from the process

  received(frame: Frame): void {
    if (frame.isResponse && frame.id !== undefined) {
      const answered = this.#own.get(frame.id);
      this.#own.delete(frame.id);
      if (answered !== undefined) return answered(frame);
    }
    const shown = this.#open.toClient(frame);
    if (shown !== undefined) this.#listener.received(shown);
    this.#checkDrained();
  }

  faulted(fault: ServerFault): void {
    const { id, kind, error } = fault;
    const isAnswer = kind !== 'request' && kind !== 'notification' && id !== undefined;
    const answered = isAnswer ? this.#own.get(id) : undefined;
    if (isAnswer && answered !== undefined) {
      this.#own.delete(id);
      return answered(errorFrame(id, rpcErrorOf(error)));
    }
    if (isAnswer) this.#open.failed(id);
    this.#listener.faulted(fault);
    this.#checkDrained();
  }

  drained(): void {
    if (this.#state.kind === 'running') this.#listener.drained();
  }

  /** The process has ended by itself. */
  ended(error: BridgeError): void {
    const state = this.#state;
    switch (state.kind) {
      case 'running':
        if (this.#open.era === undefined) return this.#giveUp(error);
        this.#state = { kind: 'down' };
        return this.#forget(error, 'refuse');
      case 'draining':
        state.cancel();
        this.#keepLists();
        return this.#startNext(() => this.#forget(error, 'repeat'));
      case 'restoring':
        state.cancel();
        return this.#failed(error);
      case 'waiting':
      case 'down':
      case 'over':
        return;
      default:
        assertNever(state);
    }
  }

  // ---- the end of a process

  #drain(carrier: ProcessCarrier): void {
    const { clock } = this.#options.deps;
    this.#open.isReplacing = true;
    const cancelGrace = clock.after(this.#options.graceMs, () => this.#replace(carrier));
    const cancelListing = clock.after(MAX_LISTING_MS, () => this.#listed());
    this.#state = {
      kind: 'draining',
      carrier,
      cancel: () => {
        cancelGrace();
        cancelListing();
      },
    };
    // Until clients have been told of the changes of this process, they have the lists of an earlier one.
    if (this.#lists.kind === 'comparing') return this.#checkDrained();
    this.#lists = { kind: 'reading', read: this.#readLists(() => this.#listed()) };
  }

  /** The lists have been read, or there is no more time for it. */
  #listed(): void {
    this.#keepLists();
    this.#checkDrained();
  }

  #keepLists(): void {
    if (this.#lists.kind !== 'reading') return;
    this.#shown = new Map([...this.#shown, ...this.#lists.read]);
    this.#lists = IDLE;
  }

  #checkDrained(): void {
    if (this.#state.kind !== 'draining' || !this.#open.isIdle || this.#lists.kind === 'reading') return;
    this.#replace(this.#state.carrier);
  }

  #replace(carrier: ProcessCarrier): void {
    if ('cancel' in this.#state) this.#state.cancel();
    this.#keepLists();
    carrier.replace();
    this.#startNext(() => this.#forget(this.#notFinished(), 'repeat'));
  }

  /** Ends what only the last process could have gone on with. */
  #forget(error: BridgeError, repeatable: 'repeat' | 'refuse'): void {
    this.#own.clear();
    const { repeatable: again, lost, questions } = this.#open.processEnded();
    if (repeatable === 'repeat') this.#putFirst(again);
    else for (const { frame } of again) this.#refuse(frame.id, error);
    for (const requestId of questions) this.#listener.received(notificationFrame(CANCELED, { requestId }));
    for (const id of lost) this.#refuse(id, error);
  }

  #putFirst(messages: readonly ClientMessage[]): void {
    const later = this.#waiting.takeAll();
    for (const message of [...messages, ...later]) this.#waiting.add(message);
  }

  #refuse(id: JsonRpcId | undefined, error: BridgeError): void {
    if (this.#state.kind !== 'over') this.#listener.faulted({ error, kind: 'error', id });
  }

  // ---- the next process

  /**
   * Starts a process once nothing of the last one is left, since it may hold a port, a lock or a database.
   * @param prepared called when messages wait for it already
   */
  #startNext(prepared: () => void = () => {}): void {
    let slot: ChildSlot;
    try {
      slot = this.#options.processes.reserve();
    } catch (thrown) {
      this.#state = { kind: 'down' };
      prepared();
      return queueMicrotask(() => this.#failed(toBridgeError(thrown)));
    }
    this.#state = { kind: 'waiting', slot };
    prepared();
    void Promise.all([this.#process?.gone, slot.free]).then(() => this.#startIn(slot));
  }

  #startIn(slot: ChildSlot): void {
    if (this.#state.kind !== 'waiting' || this.#state.slot !== slot) return;
    let carrier: ProcessCarrier;
    try {
      carrier = this.#options.processes.start(slot, this);
    } catch (thrown) {
      return this.#failed(toBridgeError(thrown));
    }
    this.#process = carrier.process;
    this.#restore(carrier);
  }

  #restore(carrier: ProcessCarrier): void {
    this.#open.isReplacing = true;
    const starting = {
      kind: 'restoring',
      carrier,
      startedMs: this.#options.deps.clock.now(),
      isOutdated: false,
    } as const;
    switch (this.#open.era) {
      case 'legacy': {
        const restoration = new Restoration(this.#open.session, this);
        this.#state = { ...starting, cancel: () => restoration.cancel() };
        return restoration.start();
      }
      case 'modern': {
        const { clock, timeoutMs, exceeded } = this.timeLimit;
        const cancel = timeoutMs === 0 ? () => {} : clock.after(timeoutMs, () => this.failed(exceeded()));
        this.#state = { ...starting, cancel };
        // Any answer shows that the process serves.
        return this.ask(DISCOVER, {}, (answer) => {
          cancel();
          if (answer.kind === 'result') this.#noteCapabilities(answer);
          this.restored([]);
        });
      }
      case undefined:
        this.#state = { ...starting, cancel: () => {} };
        return this.restored([]);
      default:
        return assertNever(this.#open.era);
    }
  }

  ask(method: string, params: object, answered: (answer: Frame) => void): void {
    if (!('carrier' in this.#state)) return;
    const { randomId } = this.#options.deps;
    const id = randomId();
    this.#own.set(id, answered);
    this.#state.carrier.send(this.#ownRequest(id, method, params), undefined);
  }

  #ownRequest(id: JsonRpcId, method: string, params: object): Frame {
    const { session, era } = this.#open;
    if (era === 'modern') {
      const { clientInfo } = this.#options;
      return createModernRequest({ id, method, revision: LATEST_MODERN_REVISION, clientInfo, params: { ...params } });
    }
    // The client has agreed to this revision, whatever it has offered at first.
    const protocolVersion = session.offer?.protocolVersion;
    const isHandshake = method === INITIALIZE && protocolVersion !== undefined;
    return requestFrame(id, method, isHandshake ? { ...params, protocolVersion } : params);
  }

  tell(method: string, taken: () => void): void {
    if ('carrier' in this.#state) this.#state.carrier.send(notificationFrame(method), undefined);
    taken();
  }

  offered({ protocolVersion }: Fields, answer: Frame): boolean {
    this.#noteCapabilities(answer);
    this.#listener.replaced?.(answer);
    const before = this.#open.session.offer?.protocolVersion;
    if (before !== protocolVersion) {
      this.log.warn('the server speaks another revision after its restart; clients should open new sessions');
    }
    return true;
  }

  #noteCapabilities(answer: Frame): void {
    if (!this.#open.capable(answer)) return;
    this.log.warn('the server declares other capabilities after its restart; clients see them in new sessions');
  }

  refusal(): BridgeError {
    const { name } = this.#options.processes;
    return new BridgeError('ERR_UPSTREAM_PROTOCOL', `Server "${name}" refused initialize after its restart.`);
  }

  /** The process runs, and does not take the session. */
  failed(reason: BridgeError): void {
    if (this.#state.kind !== 'restoring') return;
    this.log.warn({ code: reason.code }, reason.message);
    this.#state.cancel();
    this.#state.carrier.close(reason);
    this.#failed(reason);
  }

  restored(missed: readonly Frame[]): void {
    if (this.#state.kind !== 'restoring') return;
    const { carrier, isOutdated, cancel } = this.#state;
    cancel();
    this.#open.isReplacing = false;
    this.#state = { kind: 'running', carrier };
    if (this.#isPaused) carrier.pause();
    for (const { frame, call } of this.#open.reopen()) carrier.send(frame, call);
    for (const message of this.#waiting.takeAll()) this.#sendWaiting(carrier, message);
    if (!carrier.isFull) this.#listener.drained();
    for (const frame of missed) if (frame.method === RESOURCE_UPDATED) this.#listener.received(frame);
    this.#tellUpdated();
    if (this.#open.era !== undefined) this.#compareLists();
    this.#settle({ kind: 'ready' });
    if (isOutdated) this.#drain(carrier);
  }

  #sendWaiting(carrier: ProcessCarrier, message: ClientMessage): void {
    const { frame, call } = message;
    if (call !== undefined && call.state.kind !== 'open') return;
    if (frame.kind === 'request') this.#pass(carrier, message);
    else carrier.send(frame, call);
  }

  /** No process serves. The connection goes on if its server had answered before. */
  #failed(error: BridgeError): void {
    if (this.#open.era === undefined) return this.#giveUp(error);
    const isOutdated = this.#state.kind === 'restoring' && this.#state.isOutdated;
    this.#own.clear();
    this.#state = { kind: 'down' };
    this.#settle({ kind: 'failed', error });
    if (isOutdated) return this.#startNext();
    const refused = this.#notStarted(error);
    for (const { frame } of this.#waiting.takeAll()) if (frame.kind === 'request') this.#refuse(frame.id, refused);
    this.#listener.drained();
  }

  #giveUp(error: BridgeError): void {
    if (this.#state.kind === 'over') return;
    this.#settle({ kind: 'failed', error });
    this.#end();
    this.#listener.ended(error);
  }

  #settle(outcome: RestartOutcome): void {
    const awaiting = this.#awaiting;
    this.#awaiting = this.#awaitingNext;
    this.#awaitingNext = [];
    for (const resolve of awaiting) resolve(outcome);
  }

  // ---- what clients are told

  #readLists(done: () => void): ListDigests {
    return readLists(this.#open.capabilities, (method, params, answered) => this.ask(method, params, answered), done);
  }

  #compareLists(): void {
    this.#lists = { kind: 'comparing' };
    const digests = this.#readLists(() => {
      const changes = changesBetween(this.#shown, digests);
      this.#shown = digests;
      this.#lists = IDLE;
      for (const { method, flag } of changes) this.#tellChange(method, {}, (filter) => filter[flag]);
    });
  }

  /** A subscribed resource may have changed with its server. */
  #tellUpdated(): void {
    const uris = new Set(this.#open.listening.flatMap(({ filter }) => filter.resourceSubscriptions));
    for (const uri of uris) {
      this.#tellChange(RESOURCE_UPDATED, { uri }, ({ resourceSubscriptions }) => resourceSubscriptions.includes(uri));
    }
  }

  #tellChange(method: string, params: object, isWanted: (filter: ListenFilter) => boolean): void {
    if (this.#open.era === 'legacy') return this.#listener.received(notificationFrame(method));
    for (const { id, filter } of this.#open.listening) {
      if (!isWanted(filter)) continue;
      this.#listener.received(notificationFrame(method, { ...params, _meta: { [META_SUBSCRIPTION_ID]: id } }));
    }
  }

  // ---- errors

  #notFinished(): BridgeError {
    const { processes, graceMs } = this.#options;
    const message = `Server "${processes.name}" was restarted because a watched file changed, and this call did not end within ${graceMs} ms; repeat it. --shutdown-grace gives calls more time.`;
    return new BridgeError('ERR_UPSTREAM_RESTARTED', message);
  }

  #notStarted(error: BridgeError): BridgeError {
    const again = 'It is started again when a watched file changes, and for the next call.';
    const { code, message, data, retryAfterMs } = error;
    const retry = retryAfterMs === undefined ? {} : { retryAfterMs };
    return new BridgeError(code, `${message} ${again}`, { ...(data && { data }), ...retry, cause: error });
  }

  #tooManyWait(): BridgeError {
    const { name } = this.#options.processes;
    return new BridgeError('ERR_UPSTREAM_STARTING', `Server "${name}" is restarting and too many messages wait.`);
  }
}

/** Returns the error for a server that does not answer the handshake of a restored session. */
function timedOut(name: string, timeoutMs: number): BridgeError {
  const message = `Server "${name}" did not answer the handshake within ${timeoutMs} ms after its restart; raise --request-timeout if it needs longer.`;
  return new BridgeError('ERR_UPSTREAM_TIMEOUT', message, { data: { phase: 'initialize', timeoutMs } });
}
