import type { Frame } from '../../wire/frame.ts';
import { notificationFrame } from '../../wire/write-message.ts';
import { PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED } from '../vocabulary/methods.ts';
import { asFields, type Fields } from '../vocabulary/payload.ts';

const LISTS = [
  ['tools', TOOLS_CHANGED],
  ['prompts', PROMPTS_CHANGED],
  ['resources', RESOURCES_CHANGED],
] as const;

/** The part of a server's capabilities that `changeNotifications` reads. */
export function announcingCapabilities(capabilities: unknown): Fields {
  const announcing = LISTS.filter(([name]) => announcesChanges(asFields(capabilities)?.[name]));
  return Object.fromEntries(announcing.map(([name]) => [name, { listChanged: true }]));
}

/**
 * Notifications of possible changes that the client missed: one for each list whose changes the server announces, one
 * for each subscribed resource.
 */
export function changeNotifications(
  capabilities: Readonly<Record<string, unknown>> | undefined,
  subscribedUris: readonly string[],
): readonly Frame[] {
  const lists = LISTS.filter(([name]) => announcesChanges(capabilities?.[name]));
  return [
    ...lists.map(([, method]) => notificationFrame(method)),
    ...subscribedUris.map((uri) => notificationFrame(RESOURCE_UPDATED, { uri })),
  ];
}

function announcesChanges(capability: unknown): boolean {
  return (capability as { listChanged?: unknown } | undefined)?.listChanged === true;
}
