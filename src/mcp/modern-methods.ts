/** What a method is in the modern era. */
import {
  CALL_TOOL,
  CANCELLED,
  COMPLETE,
  DISCOVER,
  ELICIT,
  GET_PROMPT,
  INITIALIZE,
  INITIALIZED,
  LIST_PROMPTS,
  LIST_RESOURCE_TEMPLATES,
  LIST_RESOURCES,
  LIST_ROOTS,
  LIST_TOOLS,
  PING,
  PROGRESS,
  READ_RESOURCE,
  ROOTS_CHANGED,
  SAMPLE,
  SET_LEVEL,
  SUBSCRIBE,
  TASK_STATUS,
  UNSUBSCRIBE,
} from './methods.ts';

/** Opens a stream of change notifications. [spec 2026-07-28 basic/patterns/subscriptions] */
export const LISTEN = 'subscriptions/listen';
/** The first message on such a stream. */
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

/** Requests of extensions whose results must have the same hints. [SEP-2640 skills] */
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

/** Requests of earlier revisions that the modern era is without. [spec 2026-07-28 changelog] */
const gone: ReadonlySet<string> = new Set([
  INITIALIZE,
  PING,
  SET_LEVEL,
  SUBSCRIBE,
  UNSUBSCRIBE,
  'tasks/result',
  'tasks/list',
]);

/** Requests that only a server makes, in whatever form. */
const ofServers: ReadonlySet<string> = new Set([SAMPLE, ELICIT, LIST_ROOTS]);

/** What a client of any era says by itself. [schema 2025-11-25, 2026-07-28 ClientNotification] */
const clientNotifications: ReadonlySet<string> = new Set([
  CANCELLED,
  PROGRESS,
  INITIALIZED,
  ROOTS_CHANGED,
  TASK_STATUS,
]);

/** Is it a notification that the specification knows of? All others are an extension's, whatever they are called. */
export function isClientNotification(method: string): boolean {
  return clientNotifications.has(method);
}

/** Must the result of this request say how long it stays good? */
export function isCacheable(method: string): boolean {
  return cacheable.has(method) || cacheableExtensions.has(method);
}

/**
 * May a modern client send this request? Only names that are known not to be requests of this era are refused. An
 * extension chooses its names freely, also below the first segments that the specification uses: SEP-2640 has
 * `resources/directory/read`.
 */
export function isModernRequest(method: string): boolean {
  return !gone.has(method) && !ofServers.has(method) && !clientNotifications.has(method);
}

/** Is it a request that clients make by the specification, of any era? Of all others nobody here knows the members. */
export function isSpecified(method: string): boolean {
  return modern.has(method) || gone.has(method);
}
