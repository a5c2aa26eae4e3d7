/** Methods the bridge has to know by name; every other one passes unread. */

export const INITIALIZE = 'initialize';
export const DISCOVER = 'server/discover';
export const PING = 'ping';
export const SET_LEVEL = 'logging/setLevel';
export const SUBSCRIBE = 'resources/subscribe';
export const UNSUBSCRIBE = 'resources/unsubscribe';
export const LIST_TOOLS = 'tools/list';
export const LIST_RESOURCES = 'resources/list';
export const LIST_RESOURCE_TEMPLATES = 'resources/templates/list';
export const LIST_PROMPTS = 'prompts/list';
export const COMPLETE = 'completion/complete';
export const CALL_TOOL = 'tools/call';
export const GET_PROMPT = 'prompts/get';
export const READ_RESOURCE = 'resources/read';
/** Requests below this prefix may name a task by its id, so they are refused where strangers share a server. */
export const TASKS_PREFIX = 'tasks/';

export const INITIALIZED = 'notifications/initialized';
export const CANCELLED = 'notifications/cancelled';
export const PROGRESS = 'notifications/progress';
export const LOG_MESSAGE = 'notifications/message';
export const RESOURCE_UPDATED = 'notifications/resources/updated';
export const TOOLS_CHANGED = 'notifications/tools/list_changed';
export const PROMPTS_CHANGED = 'notifications/prompts/list_changed';
export const RESOURCES_CHANGED = 'notifications/resources/list_changed';
export const ROOTS_CHANGED = 'notifications/roots/list_changed';
export const ELICITATION_COMPLETE = 'notifications/elicitation/complete';
/** 2025-11-25 has this notification in both directions. */
export const TASK_STATUS = 'notifications/tasks/status';

export const SAMPLE = 'sampling/createMessage';
export const ELICIT = 'elicitation/create';
export const LIST_ROOTS = 'roots/list';

/** Requests during which a server may ask the client something. [spec 2026-07-28 input_required; SEP-2260] */
const interactive: ReadonlySet<string> = new Set([CALL_TOOL, GET_PROMPT, READ_RESOURCE]);

export function isInteractive(method: string): boolean {
  return interactive.has(method);
}

/**
 * Requests of the specification during which servers have nothing to ask. A method nobody knows may well ask; only of
 * these it is safe to say that a question is not theirs.
 */
const quiet: ReadonlySet<string> = new Set([
  INITIALIZE,
  PING,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
  LIST_TOOLS,
  LIST_PROMPTS,
  LIST_RESOURCES,
  LIST_RESOURCE_TEMPLATES,
  COMPLETE,
]);

export function mayAsk(method: string): boolean {
  return !quiet.has(method);
}

/** The task requests of 2025-11-25 and of the tasks extension, which share some names. */
const taskRequests: ReadonlySet<string> = new Set([
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
  'tasks/result',
  'tasks/list',
]);

export function isTaskRequest(method: string): boolean {
  return taskRequests.has(method);
}

/** Notifications that say "look again": a second one adds nothing to a first that was not delivered yet. */
export function isListChanged(method: string | undefined): boolean {
  return method === TOOLS_CHANGED || method === PROMPTS_CHANGED || method === RESOURCES_CHANGED;
}
