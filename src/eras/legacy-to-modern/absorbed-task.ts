import { RecentNames } from '../../collections/bounded-collections.ts';
import { assertNever, type BridgeError, type ErrorCode } from '../../errors.ts';
import { type InputRequest, readInputRequired } from '../../mcp/classify/input-required.ts';
import { type RequestMetadata, stampMetadata } from '../../mcp/classify/request-metadata.ts';
import { asFields, type Fields, readFields } from '../../mcp/vocabulary/payload.ts';
import { INTERNAL_ERROR, MISSING_CAPABILITY } from '../../mcp/vocabulary/rpc-codes.ts';
import { TASKS_EXTENSION } from '../../mcp/vocabulary/task-extension.ts';
import type { Call } from '../../relay/call.ts';
import { type Frame, withParams, withPayload } from '../../wire/frame.ts';
import { findMember } from '../../wire/json/outline.ts';
import { errorFrame, joinMembers, requestFrame, resultFrame } from '../../wire/write-message.ts';
import { MAX_ASKING_MS } from '../asking-limits.ts';
import { type CallAtModernServerHost, violation } from './call-host.ts';
import { InputRound } from './input-round.ts';
import type { Asker } from './upstream-requests.ts';

const GET = 'tasks/get';
const UPDATE = 'tasks/update';
const CANCEL = 'tasks/cancel';

/** Time between two `tasks/get`: the default if the server gives none, and the limits of a time that it gives. */
const DEFAULT_POLL_MS = 1_000;
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 60_000;
/**
 * Attempts to reach a server whose connection has failed, and the longest pause between two of them. The limit exists for
 * clients whose calls may be silent for any time; all attempts together take ten minutes.
 */
export const MAX_ATTEMPTS = 24;
const MAX_RETRY_MS = 30_000;
/** Characters of a task's id, which is kept as long as the call. */
export const MAX_TASK_ID_LENGTH = 4096;
/**
 * Number of answered inputs that are remembered, and characters of their keys. An input that is forgotten is asked once
 * more.
 */
const GIVEN_LIMITS = { count: 1000, length: 64 * 1024 };

/**
 * Returns true if the server refuses a call only because this extension is missing, which no legacy client can declare.
 */
export function needsTasks(code: unknown, data: unknown): boolean {
  if (code !== MISSING_CAPABILITY) return false;
  const required = asFields(asFields(data)?.requiredCapabilities) ?? {};
  const extensions = Object.keys(asFields(required.extensions) ?? {});
  return Object.keys(required).length === 1 && extensions.length === 1 && extensions[0] === TASKS_EXTENSION;
}

/** Returns the metadata of a call that may become a task, and of all requests about the task. */
export function declaringTasks(metadata: RequestMetadata): RequestMetadata {
  const extensions = { ...asFields(metadata.capabilities.extensions), [TASKS_EXTENSION]: {} };
  return { ...metadata, capabilities: { ...metadata.capabilities, extensions } };
}

/** Failures of the bridge after which the same request may succeed. */
const PASSING: ReadonlySet<unknown> = new Set<ErrorCode>([
  'ERR_SESSION_BUSY',
  'ERR_UPSTREAM_CLOSED',
  'ERR_UPSTREAM_CONNECT',
  'ERR_UPSTREAM_DELIVERY',
  'ERR_UPSTREAM_EXITED',
  'ERR_UPSTREAM_STARTING',
  'ERR_UPSTREAM_TIMEOUT',
]);

/** Returns true if the request may have failed on its way to the server, or in front of it. */
function isPassing(error: Frame): boolean {
  const { reason, status } = asFields(asFields(readFields(error, ['data']).data)?.bridge) ?? {};
  if (reason === 'ERR_UPSTREAM_HTTP') return typeof status === 'number' && (status >= 500 || status === 429);
  return PASSING.has(reason);
}

export interface AbsorbedTaskOptions {
  readonly host: CallAtModernServerHost;
  /** The client's call, whose answer is the result of the task. */
  readonly call: Call;
  /** Sets the number of bytes that are held for the task. Returns false if that exceeds the limit. */
  readonly hold: (bytes: number) => boolean;
  /** Called with the task's result or error, in the form of an answer to the call itself. */
  readonly onAnswered: (answer: Frame) => void;
  readonly onViolation: (reason: BridgeError) => void;
  /** Called when the client did not give the input that the task needs. */
  readonly onInputFailed: (reason: BridgeError) => void;
}

/**
 * - `idle`: not started.
 * - `waiting`: the next `tasks/get` follows after a pause.
 * - `asked`: the server has a request about the task.
 * - `collecting`: the client is being asked for input that the task needs.
 * - `over`: ended, or not followed anymore.
 */
type TaskState =
  | { readonly kind: 'idle' | 'over' }
  | { readonly kind: 'waiting'; readonly stopTimer: () => void }
  | { readonly kind: 'asked'; readonly request: Call; readonly question: TaskQuestion }
  | { readonly kind: 'collecting'; readonly round: InputRound };

/** A request about the task, which can be repeated: a server ignores answers that it has already. [SEP-2663] */
interface TaskQuestion {
  readonly method: typeof GET | typeof UPDATE;
  readonly responses?: ReadonlyMap<string, Buffer>;
}

/** Follows a task of a modern server to its end, for a client that waits for a plain result. [SEP-2663] */
export class AbsorbedTask implements Asker {
  readonly #options: AbsorbedTaskOptions;
  readonly #taskId: string;
  /** Keys of the inputs that were answered. A server may go on listing them for a while. */
  readonly #given = new RecentNames<true>(GIVEN_LIMITS);
  #pollMs = DEFAULT_POLL_MS;
  /** Consecutive requests about the task that have not reached the server. */
  #failures = 0;
  #state: TaskState = { kind: 'idle' };

  constructor(options: AbsorbedTaskOptions, taskId: string) {
    this.#options = options;
    this.#taskId = taskId;
  }

  /** `task` is the server's description of the task in its answer to the call. */
  start(task: Fields): void {
    this.#wait(task);
  }

  #wait({ pollIntervalMs }: Fields): void {
    if (typeof pollIntervalMs === 'number') {
      this.#pollMs = Math.min(Math.max(pollIntervalMs, MIN_POLL_MS), MAX_POLL_MS);
    }
    this.#askAfter(this.#pollMs, { method: GET });
  }

  #askAfter(delayMs: number, question: TaskQuestion): void {
    const stopTimer = this.#options.host.clock.after(delayMs, () => this.#ask(question));
    this.#state = { kind: 'waiting', stopTimer };
  }

  #ask(question: TaskQuestion): void {
    const { host, call } = this.#options;
    const request = this.#request(question.method, question.responses);
    const sent = host.requests.open(this, request, call.lane);
    this.#state = { kind: 'asked', request: sent, question };
    host.requests.send(request, sent);
  }

  #request(method: string, responses?: ReadonlyMap<string, Buffer>): Frame {
    const members = new Map<string, Buffer>([['taskId', Buffer.from(JSON.stringify(this.#taskId))]]);
    if (responses !== undefined) members.set('inputResponses', joinMembers(responses));
    const frame = withParams(requestFrame(0, method, {}), joinMembers(members));
    return stampMetadata(frame, declaringTasks(this.#options.host.metadata()));
  }

  notified(): void {}

  withdrawn(): void {
    this.#violates('it withdrew a request of its client');
  }

  answered(frame: Frame): void {
    if (this.#state.kind !== 'asked') return;
    if (frame.kind === 'error') return this.#refused(frame, this.#state.question);
    const { call, host, hold } = this.#options;
    call.lastActiveMs = host.clock.now();
    this.#failures = 0;
    if (this.#state.question.method === UPDATE) hold(0);
    const task = readFields(frame, ['status', 'pollIntervalMs']);
    switch (task.status) {
      case 'input_required':
        return this.#inputRequired(frame, task);
      case 'completed':
        return this.#endWith(frame, 'result');
      case 'failed':
        return this.#endWith(frame, 'error');
      case 'cancelled':
        return this.#end(errorFrame(call.id, { code: INTERNAL_ERROR, message: 'The server canceled the call.' }));
      default:
        // The task is still working, or the server has confirmed the inputs.
        return this.#wait(task);
    }
  }

  /** A failed connection is not the end of the task, which the server goes on with. */
  #refused(error: Frame, question: TaskQuestion): void {
    if (!isPassing(error) || this.#failures === MAX_ATTEMPTS) return this.#end(error);
    const pauseMs = Math.min(this.#pollMs * 2 ** this.#failures, MAX_RETRY_MS);
    this.#failures += 1;
    this.#askAfter(Math.max(pauseMs, this.#pollMs), question);
  }

  #inputRequired(frame: Frame, task: Fields): void {
    const { host, call, hold, onInputFailed } = this.#options;
    const required = readInputRequired(frame, host.profile.capabilities);
    if ('fault' in required) return this.#violates(required.fault);
    const requests = new Map<string, InputRequest>();
    for (const [key, request] of required.requests) if (!this.#given.has(key)) requests.set(key, request);
    if (requests.size === 0) return this.#wait(task);
    const round = new InputRound({
      host,
      call,
      untilMs: host.clock.now() + MAX_ASKING_MS,
      hold,
      onAnswered: (answers) => this.#give(answers),
      onFailed: (reason) => {
        this.cancel('the client did not give what the task needs');
        onInputFailed(reason);
      },
    });
    this.#state = { kind: 'collecting', round };
    round.start(requests);
  }

  #give(answers: ReadonlyMap<string, Buffer>): void {
    for (const key of answers.keys()) this.#given.set(key, true);
    this.#ask({ method: UPDATE, responses: answers });
  }

  /** Ends the task with the member that holds the answer to the call. */
  #endWith(frame: Frame, member: 'result' | 'error'): void {
    const { id } = this.#options.call;
    const span = findMember(frame.bytes, frame.payloadStart, member);
    if (span === undefined) return this.#violates(`its task has ended without a ${member}`);
    const payload = frame.bytes.subarray(span.start, span.end);
    const empty = member === 'result' ? resultFrame(id, null) : errorFrame(id, { code: 0, message: '' });
    this.#end(withPayload(empty, payload));
  }

  #end(answer: Frame): void {
    this.abandon();
    this.#options.onAnswered(answer);
  }

  #violates(fault: string): void {
    this.abandon();
    this.#options.onViolation(violation(this.#options.host.serverName, fault));
  }

  /**
   * Cancels the task, because the client does not want it anymore. `notifications/cancelled` would not end a task.
   * [SEP-2663] `asker` gets the server's answer to the cancellation.
   */
  cancel(reason: string, asker = NOBODY): void {
    if (this.#state.kind === 'over') return;
    this.#leaveState(reason);
    const { requests } = this.#options.host;
    const request = this.#request(CANCEL);
    requests.send(request, requests.open(asker, request, this.#options.call.lane));
  }

  /** Stops following the task, without canceling it at the server. */
  abandon(): void {
    this.#leaveState('the call has ended');
  }

  #leaveState(reason: string): void {
    const state = this.#state;
    this.#state = { kind: 'over' };
    switch (state.kind) {
      case 'waiting':
        return state.stopTimer();
      case 'asked':
        return void this.#options.host.requests.cancel(state.request, reason);
      case 'collecting':
        return state.round.cancel(reason);
      case 'idle':
      case 'over':
        return;
      default:
        return assertNever(state);
    }
  }
}

/** Ignores the answer to `tasks/cancel`, since the client does not wait for it. */
const NOBODY: Asker = { answered: () => {}, withdrawn: () => {}, notified: () => {} };
