/**
 * The notification filter of a `subscriptions/listen`. [spec 2026-07-28
 * basic/patterns/subscriptions#notification-filter]
 */
import type { Frame } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import { rewriteSubscriptionId } from '../classify/correlators.ts';
import { META_SUBSCRIPTION_ID } from '../vocabulary/meta.ts';
import { PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED } from '../vocabulary/methods.ts';
import { asFields, readField } from '../vocabulary/payload.ts';

export interface ListenFilter {
  readonly toolsListChanged: boolean;
  readonly promptsListChanged: boolean;
  readonly resourcesListChanged: boolean;
  readonly resourceSubscriptions: readonly string[];
}

/**
 * Limit of resources for which missed updates are announced, since each costs a message. The first ones are announced.
 */
const MAX_MISSED_UPDATES = 1000;

/** Reads `params.notifications` of the request or of its acknowledgment. Undefined if it is missing or no object. */
export function readListenFilter(frame: Frame): ListenFilter | undefined {
  const filter = asFields(readField(frame, 'notifications'));
  if (filter === undefined) return undefined;
  const { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions } = filter;
  const uris = Array.isArray(resourceSubscriptions) ? resourceSubscriptions : [];
  return {
    toolsListChanged: toolsListChanged === true,
    promptsListChanged: promptsListChanged === true,
    resourcesListChanged: resourcesListChanged === true,
    resourceSubscriptions: uris.filter((uri) => typeof uri === 'string'),
  };
}

/**
 * Notifications of possible changes to everything that the client asked for and the server granted, after a time
 * without a stream. `subscriptionId` is the JSON token of the client's request id.
 */
export function missedChanges(request: Frame, acknowledgment: Frame, subscriptionId: Buffer): readonly Frame[] {
  const wanted = readListenFilter(request);
  if (wanted === undefined) return [];
  const granted = readListenFilter(acknowledgment) ?? wanted;
  const uris = new Set(granted.resourceSubscriptions);
  const changes: [method: string, params: object][] = [];
  if (wanted.toolsListChanged && granted.toolsListChanged) changes.push([TOOLS_CHANGED, {}]);
  if (wanted.promptsListChanged && granted.promptsListChanged) changes.push([PROMPTS_CHANGED, {}]);
  if (wanted.resourcesListChanged && granted.resourcesListChanged) changes.push([RESOURCES_CHANGED, {}]);
  for (const uri of wanted.resourceSubscriptions.slice(0, MAX_MISSED_UPDATES)) {
    if (uris.has(uri)) changes.push([RESOURCE_UPDATED, { uri }]);
  }
  return changes.map(([method, params]) => {
    const frame = notificationFrame(method, { ...params, _meta: { [META_SUBSCRIPTION_ID]: 0 } });
    return rewriteSubscriptionId(frame, subscriptionId) ?? frame;
  });
}
