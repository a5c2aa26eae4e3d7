/** Finds out whether a slow server is another mcp-portage, which may be starting its own server. */
import { ControlClient, type ControlResponse } from '../http/client/control-client.ts';
import { asFields } from '../mcp/vocabulary/payload.ts';
import type { HttpTarget } from '../upstream/detect/ask-url.ts';

/** Time limit for the answer of the readiness check, which takes no time on a machine that is not overloaded. */
const READINESS_TIMEOUT_MS = 5000;

/**
 * - `starting`: its server has not answered anything yet. It may have to be downloaded.
 * - `ready`: its server has answered, but the process for one client may still be starting.
 */
export type BridgeState = 'starting' | 'ready';

/** Returns what the readiness check beside the endpoint says. Undefined if there is none. Never rejects. */
export async function findBridgeState(target: HttpTarget): Promise<BridgeState | undefined> {
  const request = {
    method: 'GET',
    url: new URL('readyz', target.url),
    headers: { accept: 'application/json' },
    cookies: target.cookies,
    timeoutMs: READINESS_TIMEOUT_MS,
  } as const;
  const response = await new ControlClient(target.http).request(request).catch(() => undefined);
  return response && readState(response);
}

function readState({ body }: ControlResponse): BridgeState | undefined {
  try {
    const { status, server, code } = asFields(JSON.parse(body.toString())) ?? {};
    if (server === 'starting' || code === 'ERR_UPSTREAM_STARTING') return 'starting';
    return status === 'ready' ? 'ready' : undefined;
  } catch {
    return undefined;
  }
}
