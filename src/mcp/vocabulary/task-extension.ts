/** Tasks as the modern era has them: an extension, which both sides declare and only the server decides on. [SEP-2663] */
import type { Frame } from '../../wire/frame.ts';
import { isDeclared } from './client-declarations.ts';
import { asFields, type Fields, readField } from './payload.ts';
import { INVALID_PARAMS, MISSING_CAPABILITY } from './rpc-codes.ts';
import type { RpcError } from './rpc-errors.ts';

/** Has a capability of its own in 2025-11-25, where it works differently. Never passed on: nothing translates it. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
export const GET_TASK = 'tasks/get';
export const UPDATE_TASK = 'tasks/update';
/** This method exists in 2025-11-25, too. */
export const CANCEL_TASK = 'tasks/cancel';
/** A task has changed; goes to those who listen to it. */
export const TASK_CHANGED = 'notifications/tasks';

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

export function declaresTasks(clientCapabilities: Fields): boolean {
  return isDeclared(asFields(clientCapabilities.extensions)?.[TASKS_EXTENSION]);
}

export const TASKS_MISSING: RpcError = {
  code: MISSING_CAPABILITY,
  message: 'only clients that declare the tasks extension can ask for tasks',
  data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
};

/** Told as well to whoever asks for a task of somebody else. */
export const UNKNOWN_TASK: RpcError = { code: INVALID_PARAMS, message: 'there is no such task' };

/** The error of a task whose client did not come for it in time. */
export const TASK_GIVEN_UP: RpcError = {
  code: INVALID_PARAMS,
  message:
    'This task is over, and its outcome was given up: more was kept for clients that come back than --max-parked-bytes allows. It was not run again.',
  data: { bridge: { reason: 'task_given_up' } },
};

/** The error of a task that was under way in a process that is gone. */
export const TASK_LOST: RpcError = {
  code: INVALID_PARAMS,
  message: 'This task was under way in a replica that is gone, and its outcome is not known. It was not run again.',
  data: { bridge: { reason: 'task_lost' } },
};

/** `params.taskId`. */
export function readTaskId(request: Frame): string | undefined {
  const taskId = readField(request, 'taskId');
  return typeof taskId === 'string' ? taskId : undefined;
}

/** `params.notifications.taskIds` of a `subscriptions/listen`, each once; undefined: it does not ask for tasks. */
export function readTaskIds(listen: Frame): readonly string[] | undefined {
  const taskIds = asFields(readField(listen, 'notifications'))?.taskIds;
  if (!Array.isArray(taskIds)) return undefined;
  return [...new Set(taskIds.filter((taskId) => typeof taskId === 'string'))];
}

export interface TaskView {
  /** The id by which the client knows the task. */
  readonly taskId: string;
  readonly status: TaskStatus;
  /** What a server of 2025-11-25 said of it last. */
  readonly task: Fields;
  /** How long it is kept. */
  readonly ttlMs: number;
}

/** The members of a task by their modern names, as JSON texts. */
export function taskMembers({ taskId, status, task, ttlMs }: TaskView): Map<string, Buffer> {
  const { statusMessage, createdAt, lastUpdatedAt, pollInterval } = task;
  const members = { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs: pollInterval };
  const said = Object.entries(members).filter(([, value]) => value !== undefined);
  return new Map(said.map(([name, value]) => [name, Buffer.from(JSON.stringify(value))]));
}
