/** Finds out whether a slow server is another mcp-portage that is starting its own server, such as one to be downloaded. */
import { ControlClient, type ControlResponse } from '../http/client/control-client.ts';
import { asFields } from '../mcp/vocabulary/payload.ts';
import type { HttpTarget } from '../upstream/detect/ask-url.ts';

/** Time limit for the answer of the readiness check, which takes no time. */
const READINESS_TIMEOUT_MS = 2000;

/** Returns true if the readiness check beside the endpoint says so. Never rejects. */
export async function isStartingBridge(target: HttpTarget): Promise<boolean> {
  const request = {
    method: 'GET',
    url: new URL('readyz', target.url),
    headers: { accept: 'application/json' },
    cookies: target.cookies,
    timeoutMs: READINESS_TIMEOUT_MS,
  } as const;
  const response = await new ControlClient(target.http).request(request).catch(() => undefined);
  return response !== undefined && saysStarting(response);
}

function saysStarting({ body }: ControlResponse): boolean {
  try {
    const { server, code } = asFields(JSON.parse(body.toString())) ?? {};
    return server === 'starting' || code === 'ERR_UPSTREAM_STARTING';
  } catch {
    return false;
  }
}
