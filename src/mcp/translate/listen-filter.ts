/** What a `subscriptions/listen` wants to hear. [spec 2026-07-28 basic/patterns/subscriptions#notification-filter] */
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

/** A client with more resources is told to look again at the first ones; each costs a message of its own. */
const MAX_MISSED_UPDATES = 1000;

/** `params.notifications` of the request, or of its acknowledgment. Undefined: there is none. */
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
 * "Look again" for all that the client asked for and the server granted, for a time in which nobody listened.
 * `subscriptionId` is the token of the client's request.
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
