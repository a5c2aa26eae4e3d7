/** What a modern client asks about tasks, as its conversations answer it. */

import type { Fields } from '../../mcp/vocabulary/payload.ts';
import { METHOD_NOT_FOUND } from '../../mcp/vocabulary/rpc-codes.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import {
  CANCEL_TASK,
  readTaskId,
  readTaskIds,
  TASKS_EXTENSION,
  TASKS_MISSING,
  UPDATE_TASK,
} from '../../mcp/vocabulary/task-extension.ts';
import type { InitializeResult } from '../../relay/shared/initialize-result.ts';
import type { Frame } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';
import type { HostedTask } from './hosted-task.ts';
import type { HostedTasks } from './hosted-tasks.ts';
import { offersTasks } from './task-tools.ts';

export interface TaskClient {
  readonly principal: string;
  /** It declared the extension. */
  readonly declaresTasks: boolean;
}

export const NO_METHOD: RpcError = { code: METHOD_NOT_FOUND, message: 'this server has no such method' };

/** The extension that `server/discover` declares for tasks; undefined: there are none. */
export function taskExtensions(tasks: HostedTasks | undefined, server: InitializeResult): Fields | undefined {
  return tasks !== undefined && offersTasks(server.capabilities) ? { [TASKS_EXTENSION]: {} } : undefined;
}

export interface TaskQuestion {
  readonly request: Frame;
  readonly client: TaskClient;
  readonly tasks: HostedTasks | undefined;
  /** What the server said of itself, if it has. */
  readonly server: InitializeResult | undefined;
}

/** Calls `tell` once with the answer, under an id that is not the client's. Returns what stops it. */
export function askOfTask({ request, client, tasks, server }: TaskQuestion, tell: (answer: Frame) => void): () => void {
  const taskId = readTaskId(request);
  const task = tasks?.find(taskId, client.principal);
  const hasTasks = tasks !== undefined && (server === undefined || offersTasks(server.capabilities));
  if (!hasTasks) tell(errorFrame(0, NO_METHOD));
  else if (!client.declaresTasks) tell(errorFrame(0, TASKS_MISSING));
  else if (task === undefined) tell(errorFrame(0, tasks.lossOf(taskId, client.principal)));
  else if (request.method === UPDATE_TASK) tell(task.update(request));
  else if (request.method === CANCEL_TASK) tell(task.cancel());
  else return task.look(tell);
  return () => {};
}

/** Those a `subscriptions/listen` wants to hear of and may. */
export function tasksToWatch(
  listen: Frame,
  client: TaskClient,
  tasks: HostedTasks | undefined,
): readonly HostedTask[] | RpcError {
  const taskIds = tasks === undefined ? undefined : readTaskIds(listen);
  if (tasks === undefined || taskIds === undefined) return [];
  if (!client.declaresTasks) return TASKS_MISSING;
  return taskIds.flatMap((taskId) => tasks.find(taskId, client.principal) ?? []);
}
