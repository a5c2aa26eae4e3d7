import { ControlClient, type ControlResponse } from '../http/client/control-client.ts';
import { parseAuthChallenge } from '../http/client/credentials.ts';
import type { ResponseHead } from '../http/client/http-call.ts';
import { showUrl } from '../http/shown-url.ts';
import { reachedAs } from '../http/socket-addresses.ts';
import { isStringArray } from '../mcp/vocabulary/discover.ts';
import { asFields, type Fields } from '../mcp/vocabulary/payload.ts';
import type { HttpTarget } from '../upstream/detect/ask-url.ts';
import { untilAborted } from '../upstream/detect/deadline.ts';
import type { StepLog } from './findings.ts';
import type { Authorization } from './report.ts';

const METADATA_TIMEOUT_MS = 5000;
const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const MAX_NAMES = 50;

export interface AuthorizationQuestion {
  readonly target: HttpTarget;
  /** The response that refused the request. */
  readonly head: ResponseHead;
  readonly steps: StepLog;
  readonly signal: AbortSignal;
}

/**
 * Collects what a server that requires authorization reveals: its `WWW-Authenticate` header and its resource metadata.
 * Metadata at another origin is only named, not requested. [RFC 9728 3.1, 5.1; spec 2025-11-25
 * basic/authorization#protected-resource-metadata]
 */
export async function findAuthorization(question: AuthorizationQuestion): Promise<Authorization> {
  const { target, head } = question;
  const token = head.wasAuthorized ? 'refused' : 'missing';
  const challenge = parseAuthChallenge(head.headers);
  const fromHeader = challenge.resourceMetadata;
  const urls =
    fromHeader === undefined ? wellKnownUrls(target.url).map((url) => reachedAs(target.url, url)) : [fromHeader];
  const { scopes } = challenge;
  for (const url of urls) {
    const isNear = url.origin === target.url.origin;
    const metadata = isNear ? await readMetadata(url, question) : undefined;
    if (metadata === undefined && fromHeader === undefined) continue;
    return {
      status: head.status,
      token,
      scheme: challenge.scheme,
      resourceMetadata: showUrl(url),
      metadataSource: fromHeader === undefined ? 'well-known' : 'header',
      authorizationServers: namesIn(metadata?.authorization_servers),
      scopes: scopes.length > 0 ? scopes : namesIn(metadata?.scopes_supported),
    };
  }
  return {
    status: head.status,
    token,
    scheme: challenge.scheme,
    resourceMetadata: undefined,
    metadataSource: undefined,
    authorizationServers: [],
    scopes,
  };
}

/** The well-known URLs: first for the endpoint's path, then for the whole server. */
function wellKnownUrls({ origin, pathname }: URL): readonly URL[] {
  const path = pathname.replace(/\/$/, '');
  return [...new Set([`${WELL_KNOWN}${path}`, WELL_KNOWN])].map((wellKnown) => new URL(wellKnown, origin));
}

async function readMetadata(url: URL, { target, steps, signal }: AuthorizationQuestion): Promise<Fields | undefined> {
  const control = new ControlClient(target.http);
  const { clock } = target.http;
  let metadata: Fields | undefined;
  await steps.run(`GET ${url.pathname}`, async () => {
    const startedMs = clock.now();
    const asked = control
      .request({
        method: 'GET',
        url,
        headers: { accept: 'application/json' },
        cookies: target.cookies,
        timeoutMs: METADATA_TIMEOUT_MS,
      })
      .catch(() => undefined);
    const response = await untilAborted(asked, signal);
    metadata = response === undefined ? undefined : parseMetadata(response);
    const summary = metadata === undefined ? 'no metadata there' : 'metadata of the protected resource';
    return { summary, head: response, tookMs: clock.now() - startedMs };
  });
  return metadata;
}

function parseMetadata({ status, body }: ControlResponse): Fields | undefined {
  if (status !== 200) return undefined;
  try {
    return asFields(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function namesIn(value: unknown): readonly string[] {
  return isStringArray(value) ? value.slice(0, MAX_NAMES) : [];
}
