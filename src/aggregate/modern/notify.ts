import { isClientNotification } from '../../mcp/vocabulary/methods.ts';
import type { Frame } from '../../wire/frame.ts';
import type { Aggregate } from '../aggregate.ts';
import type { ModernCaller } from './member-call.ts';
import type { Viewer } from './viewer.ts';

/** Passes a notification that names no server to all that this caller has used. */
export function passNotification(
  frame: Frame,
  caller: ModernCaller,
  { aggregate, viewer }: { readonly aggregate: Aggregate; readonly viewer: Viewer },
): void {
  // The notifications of the specification are about a request, or mean nothing in this era.
  if (isClientNotification(frame.method ?? '')) return;
  const { principal } = caller;
  for (const member of aggregate.membersFor(principal)) {
    if (!viewer.used.has(member)) continue;
    const { headers, environment } = member.viewOf(caller);
    member.start().then(
      ({ modernCalls }) => modernCalls.notify(frame, { transport: 'aggregate', principal, environment, headers }),
      // A notification has no answer, and the next request tells that the server is not there.
      () => {},
    );
  }
}
