import type { Frame } from '../wire/frame.ts';
import { notificationFrame } from '../wire/write-message.ts';
import { PROMPTS_CHANGED, RESOURCE_UPDATED, RESOURCES_CHANGED, TOOLS_CHANGED } from './methods.ts';

/**
 * "Look again" for everything a server with these capabilities may have changed while nobody was told: one for each
 * list it announces changes of, one for each subscribed resource.
 */
export function changeNotifications(
  capabilities: Readonly<Record<string, unknown>> | undefined,
  subscribedUris: readonly string[],
): readonly Frame[] {
  const changed = [
    ['tools', TOOLS_CHANGED],
    ['prompts', PROMPTS_CHANGED],
    ['resources', RESOURCES_CHANGED],
  ] as const;
  const lists = changed.filter(([name]) => announcesChanges(capabilities?.[name]));
  return [
    ...lists.map(([, method]) => notificationFrame(method)),
    ...subscribedUris.map((uri) => notificationFrame(RESOURCE_UPDATED, { uri })),
  ];
}

function announcesChanges(capability: unknown): boolean {
  return (capability as { listChanged?: unknown } | undefined)?.listChanged === true;
}
