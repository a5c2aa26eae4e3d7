import type { Deps } from '../../../deps.ts';
import { type BridgeError, toBridgeError } from '../../../errors.ts';
import type { Fields } from '../../../mcp/vocabulary/payload.ts';
import { METHOD_NOT_FOUND } from '../../../mcp/vocabulary/rpc-codes.ts';
import { type RpcError, rpcErrorOf } from '../../../mcp/vocabulary/rpc-errors.ts';
import {
  CANCEL_TASK,
  GET_TASK,
  readTaskId,
  readTaskIds,
  TASK_GIVEN_UP,
  TASK_LOST,
  TASKS_EXTENSION,
  TASKS_MISSING,
  UNKNOWN_TASK,
  UPDATE_TASK,
} from '../../../mcp/vocabulary/task-extension.ts';
import type { InitializeResult } from '../../../relay/shared/legacy/initialize-result.ts';
import type { OutcomeStorage, StoredOutcome } from '../../../relay/shared-state.ts';
import type { Frame } from '../../../wire/frame.ts';
import { errorFrame } from '../../../wire/write-message.ts';
import { MAX_ASKING_MS } from '../../asking-limits.ts';
import { ParkedBytes } from '../../parked-bytes.ts';
import { answerOf, modernResult } from '../call-messages.ts';
import { KeptOutcomes, PARKING_LIMITS, type ParkingLimits } from '../questions/parked-calls.ts';
import { HostedTask, type HostedTaskOptions } from './hosted-task.ts';
import { offersTasks } from './task-tools.ts';

/** A task may take as long as any other call; a server may want to keep its own tasks for less. */
export const MAX_TASK_MS = MAX_ASKING_MS;

export type NewTask = Omit<
  HostedTaskOptions,
  'id' | 'ttlMs' | 'clock' | 'log' | 'held' | 'outcomes' | 'storage' | 'onGone'
>;

/** The tasks modern clients know of, by the ids they know them by. */
export class HostedTasks {
  readonly #deps: Deps;
  readonly #limits: ParkingLimits;
  readonly #bytes: ParkedBytes;
  readonly #outcomes: KeptOutcomes;
  readonly #storage: OutcomeStorage | undefined;
  readonly #byId = new Map<string, HostedTask>();

  constructor(
    deps: Deps,
    limits: ParkingLimits = PARKING_LIMITS,
    bytes = new ParkedBytes(limits),
    outcomes = new KeptOutcomes(limits.bytes),
    storage: OutcomeStorage | undefined = undefined,
  ) {
    this.#deps = deps;
    this.#limits = limits;
    this.#bytes = bytes;
    this.#outcomes = outcomes;
    this.#storage = storage;
  }

  /** False: there are so many tasks that calls of this caller are not to become more. */
  hasRoomFor(caller: string): boolean {
    const { perPrincipal, total } = this.#limits;
    const own = [...this.#byId.values()].filter(({ principal }) => principal === caller);
    return own.length < perPrincipal && this.#byId.size < total;
  }

  /** Makes a task that is to be started. Undefined: there are too many, or they hold too much, and the call must be waited for. */
  add(task: NewTask): HostedTask | undefined {
    if (!this.hasRoomFor(task.principal)) return undefined;
    const held = this.#bytes.open(task.principal);
    if (!held.set(task.answered.request.bytes.length)) return undefined;
    const { ttl } = task.task;
    const ttlMs = typeof ttl === 'number' ? Math.min(Math.max(0, ttl), MAX_TASK_MS) : MAX_TASK_MS;
    const { clock, log, randomId } = this.#deps;
    const onGone = (gone: HostedTask): void => void this.#byId.delete(gone.id);
    const hosted = new HostedTask({
      ...task,
      id: randomId(),
      ttlMs,
      clock,
      log,
      held,
      outcomes: this.#outcomes,
      storage: this.#storage,
      onGone,
    });
    this.#byId.set(hosted.id, hosted);
    return hosted;
  }

  /** A task of somebody else is none. */
  find(id: string | undefined, principal: string): HostedTask | undefined {
    const task = id === undefined ? undefined : this.#byId.get(id);
    return task?.principal === principal ? task : undefined;
  }

  /** Why there is none by this id. */
  lossOf(id: string | undefined, principal: string): RpcError {
    return id !== undefined && this.#outcomes.wasGivenUp(id, principal) ? TASK_GIVEN_UP : UNKNOWN_TASK;
  }

  close(reason: BridgeError): void {
    for (const task of [...this.#byId.values()]) task.close(reason);
  }
}

// ---- What a modern client asks about tasks, as its requests answer it.

export interface TaskClient {
  readonly principal: string;
  /** True if the client declared the extension. */
  readonly declaresTasks: boolean;
}

export const NO_METHOD: RpcError = { code: METHOD_NOT_FOUND, message: 'this server has no such method' };

/** The extension that `server/discover` declares for tasks; undefined: there are none. */
export function taskExtensions(server: InitializeResult): Fields | undefined {
  return offersTasks(server.capabilities) ? { [TASKS_EXTENSION]: {} } : undefined;
}

export interface TaskQuestion {
  readonly request: Frame;
  readonly client: TaskClient;
  readonly tasks: HostedTasks;
  /** Outcomes of other replicas; undefined: there are none. */
  readonly outcomes: OutcomeStorage | undefined;
  /** The server's answer to `initialize`, if it is known. */
  readonly server: InitializeResult | undefined;
}

/** Calls `tell` once with the answer, under an id that is not the client's. Returns what stops it. */
export function askOfTask(
  { request, client, tasks, outcomes, server }: TaskQuestion,
  tell: (answer: Frame) => void,
): () => void {
  const taskId = readTaskId(request);
  const task = tasks.find(taskId, client.principal);
  const hasTasks = server === undefined || offersTasks(server.capabilities);
  if (!hasTasks) tell(errorFrame(0, NO_METHOD));
  else if (!client.declaresTasks) tell(errorFrame(0, TASKS_MISSING));
  else if (task === undefined && outcomes !== undefined && taskId !== undefined)
    return askOfStored({ request, client, tasks, outcomes, taskId }, tell);
  else if (task === undefined) tell(errorFrame(0, tasks.lossOf(taskId, client.principal)));
  else if (request.method === UPDATE_TASK) tell(task.update(request));
  else if (request.method === CANCEL_TASK) tell(task.cancel());
  else return task.look(tell);
  return () => {};
}

interface StoredTaskQuestion extends Pick<TaskQuestion, 'request' | 'client' | 'tasks'> {
  readonly outcomes: OutcomeStorage;
  readonly taskId: string;
}

/** A task that is over cannot be changed anymore, so that all but its state is acknowledged without effect. */
function askOfStored(
  { request, client: { principal }, tasks, outcomes, taskId }: StoredTaskQuestion,
  tell: (answer: Frame) => void,
): () => void {
  let told = tell;
  const answer = (stored: StoredOutcome | undefined): Frame => {
    if (stored === undefined) return errorFrame(0, tasks.lossOf(taskId, principal));
    const kept = answerOf(stored);
    if (kept === undefined) return errorFrame(0, TASK_LOST);
    return request.method === GET_TASK ? kept : modernResult('complete', new Map(), undefined);
  };
  outcomes.find(taskId, principal).then(
    (stored) => told(answer(stored)),
    (thrown: unknown) => told(errorFrame(0, rpcErrorOf(toBridgeError(thrown)))),
  );
  return () => {
    told = () => {};
  };
}

/** Returns the tasks that a `subscriptions/listen` names and whose changes its client may hear of. */
export function tasksToWatch(listen: Frame, client: TaskClient, tasks: HostedTasks): readonly HostedTask[] | RpcError {
  const taskIds = readTaskIds(listen);
  if (taskIds === undefined) return [];
  if (!client.declaresTasks) return TASKS_MISSING;
  return taskIds.flatMap((taskId) => tasks.find(taskId, client.principal) ?? []);
}
