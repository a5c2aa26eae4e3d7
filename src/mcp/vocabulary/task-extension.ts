/** Tasks of the modern era: an extension that both sides declare and whose use only the server decides. [SEP-2663] */
import type { Frame } from '../../wire/frame.ts';
import { isDeclared } from './client-declarations.ts';
import { asFields, type Fields, readField } from './payload.ts';
import { INVALID_PARAMS, MISSING_CAPABILITY } from './rpc-codes.ts';
import type { RpcError } from './rpc-errors.ts';

/**
 * The extension's key. 2025-11-25 has a tasks capability that works differently. The key is never forwarded, because
 * nothing translates the extension.
 */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
export const GET_TASK = 'tasks/get';
export const UPDATE_TASK = 'tasks/update';
/** This method also exists in 2025-11-25. */
export const CANCEL_TASK = 'tasks/cancel';
/** Sent to clients that subscribed to the task when it changes. */
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

/** The error for an unknown task, and for a task of another client. */
export const UNKNOWN_TASK: RpcError = { code: INVALID_PARAMS, message: 'there is no such task' };

/** The error for a task whose outcome was discarded because its client did not fetch it in time. */
export const TASK_GIVEN_UP: RpcError = {
  code: INVALID_PARAMS,
  message:
    'This task is over, and its outcome was given up: more was kept for clients that come back than --max-parked-bytes allows. It was not run again.',
  data: { bridge: { reason: 'task_given_up' } },
};

/** The error for a task that was running in a process that has ended. */
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

/** `params.notifications.taskIds` of a `subscriptions/listen`, without duplicates; undefined if it names no tasks. */
export function readTaskIds(listen: Frame): readonly string[] | undefined {
  const taskIds = asFields(readField(listen, 'notifications'))?.taskIds;
  if (!Array.isArray(taskIds)) return undefined;
  return [...new Set(taskIds.filter((taskId) => typeof taskId === 'string'))];
}

/**
 * A task as the bridge presents it. `taskId` is the id that the client knows. `task` is the latest state from the
 * 2025-11-25 server. `ttlMs` is how long the bridge keeps the task.
 */
export interface TaskView {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly task: Fields;
  readonly ttlMs: number;
}

/** The members of a task under their modern names, as JSON texts. */
export function taskMembers({ taskId, status, task, ttlMs }: TaskView): Map<string, Buffer> {
  const { statusMessage, createdAt, lastUpdatedAt, pollInterval } = task;
  const members = { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs: pollInterval };
  const said = Object.entries(members).filter(([, value]) => value !== undefined);
  return new Map(said.map(([name, value]) => [name, Buffer.from(JSON.stringify(value))]));
}
