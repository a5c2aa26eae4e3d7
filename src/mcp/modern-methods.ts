/** What a method is in the modern era. */
import {
  CALL_TOOL,
  CANCELLED,
  COMPLETE,
  DISCOVER,
  GET_PROMPT,
  INITIALIZE,
  INITIALIZED,
  LIST_PROMPTS,
  LIST_RESOURCE_TEMPLATES,
  LIST_RESOURCES,
  LIST_TOOLS,
  PING,
  PROGRESS,
  READ_RESOURCE,
  ROOTS_CHANGED,
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

/** Requests of the specification, with those of its tasks extension. */
const requests: ReadonlySet<string> = new Set([
  ...cacheable,
  CALL_TOOL,
  GET_PROMPT,
  COMPLETE,
  LISTEN,
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]);

/** What a client of any era says by itself. [schema 2025-11-25, 2026-07-28 ClientNotification] */
const clientNotifications: ReadonlySet<string> = new Set([
  CANCELLED,
  PROGRESS,
  INITIALIZED,
  ROOTS_CHANGED,
  'notifications/tasks/status',
]);

/** First segments of method names that belong to the specification, of any era. */
const reserved: ReadonlySet<string> = new Set([
  'server',
  'tools',
  'resources',
  'prompts',
  'completion',
  'logging',
  'subscriptions',
  'tasks',
  'sampling',
  'elicitation',
  'roots',
  'notifications',
]);

/** Is it a notification that the specification knows of? All others are a vendor's, whatever they are called. */
export function isClientNotification(method: string): boolean {
  return clientNotifications.has(method);
}

/** Does the result of this request say how long it stays good? */
export function isCacheable(method: string): boolean {
  return cacheable.has(method);
}

/** A request that a modern client may send: one of the specification, or a vendor's. */
export function isModernRequest(method: string): boolean {
  return requests.has(method) || !isSpecified(method);
}

/** Is the name one that only the specification may give a meaning? */
export function isSpecified(method: string): boolean {
  const slash = method.indexOf('/');
  return method === INITIALIZE || method === PING || (slash !== -1 && reserved.has(method.slice(0, slash)));
}
