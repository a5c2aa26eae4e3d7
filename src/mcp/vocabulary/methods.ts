/** Methods that the bridge knows by name. Messages with other methods pass unread. */

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
/** Asks for the outcome of a call that has become a task. [spec 2025-11-25 basic/utilities/tasks#result-retrieval] */
export const TASK_RESULT = 'tasks/result';
/** Requests with this prefix may name a task by its id, so they are rejected if several callers share a server. */
export const TASKS_PREFIX = 'tasks/';

export const INITIALIZED = 'notifications/initialized';
export const CANCELED = 'notifications/cancelled';
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
 * Requests of the specification during which servers never ask the client anything. A request of an unknown method may
 * lead to questions; only these can be ruled out when a question is attributed to a call.
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
  TASK_RESULT,
  'tasks/list',
]);

export function isTaskRequest(method: string): boolean {
  return taskRequests.has(method);
}

/** Notifications of a changed list. While one is undelivered, a second one adds nothing. */
export function isListChanged(method: string | undefined): boolean {
  return method === TOOLS_CHANGED || method === PROMPTS_CHANGED || method === RESOURCES_CHANGED;
}

// ---- The role of a method in the modern era

/** Opens a stream of change notifications. [spec 2026-07-28 basic/patterns/subscriptions] */
export const LISTEN = 'subscriptions/listen';
/** The first message on a stream of change notifications. */
export const LISTEN_ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** [spec 2026-07-28 server/utilities/caching#cacheable-results] */
const cacheable: ReadonlySet<string> = new Set([
  DISCOVER,
  LIST_TOOLS,
  LIST_PROMPTS,
  LIST_RESOURCES,
  LIST_RESOURCE_TEMPLATES,
  READ_RESOURCE,
]);

/** Requests of extensions whose results must have the cache hints too. [SEP-2640 skills] */
const cacheableExtensions: ReadonlySet<string> = new Set(['skills/list', 'skills/get']);

/** Requests of the specification, with those of its tasks extension. */
const modern: ReadonlySet<string> = new Set([
  ...cacheable,
  CALL_TOOL,
  GET_PROMPT,
  COMPLETE,
  LISTEN,
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]);

/** Requests of earlier revisions that the modern era has removed. [spec 2026-07-28 changelog] */
const gone: ReadonlySet<string> = new Set([
  INITIALIZE,
  PING,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
  TASK_RESULT,
  'tasks/list',
]);

/** Requests that only a server makes, as a message or as an input request. */
const ofServers: ReadonlySet<string> = new Set([SAMPLE, ELICIT, LIST_ROOTS]);

/** Notifications that clients of any era send. [schema 2025-11-25, 2026-07-28 ClientNotification] */
const clientNotifications: ReadonlySet<string> = new Set([CANCELED, PROGRESS, INITIALIZED, ROOTS_CHANGED, TASK_STATUS]);

/**
 * Returns true for client notifications of the specification. All others belong to an extension, whatever their name.
 */
export function isClientNotification(method: string): boolean {
  return clientNotifications.has(method);
}

/** Returns true if the result of this request must have cache hints. */
export function isCacheable(method: string): boolean {
  return cacheable.has(method) || cacheableExtensions.has(method);
}

/**
 * Returns true if a modern client may send this request. Only methods known not to be client requests of this era are
 * rejected. An extension may choose any name, even with a first segment that the specification uses: SEP-2640 has
 * `resources/directory/read`.
 */
export function isModernRequest(method: string): boolean {
  return !gone.has(method) && !ofServers.has(method) && !clientNotifications.has(method);
}

/** Requests of both eras that do not depend on earlier messages. */
const selfContained: ReadonlySet<string> = new Set([
  LIST_TOOLS,
  LIST_PROMPTS,
  LIST_RESOURCES,
  LIST_RESOURCE_TEMPLATES,
  READ_RESOURCE,
  CALL_TOOL,
  GET_PROMPT,
  COMPLETE,
]);

/** Returns true if a legacy client can send this request without a session. */
export function isSelfContained(method: string): boolean {
  return selfContained.has(method);
}

/**
 * Returns true for client requests of the specification, in any era. The members of all other requests are unknown to
 * the bridge.
 */
export function isSpecified(method: string): boolean {
  return modern.has(method) || gone.has(method);
}
