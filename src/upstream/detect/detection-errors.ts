/** What clients and the log are told when no way to speak with a server was found. */

import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { isLoginError } from '../../http/login/login-error.ts';
import { showUrl } from '../../http/shown-url.ts';
import { findCommonModern, MODERN_REVISION_IDS, REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../../printable.ts';

/** One thing that was tried. */
export interface Attempt {
  /** `POST initialize`, `GET for an event stream`. */
  readonly request: string;
  /** What came of it, in plain words. */
  readonly saw: string;
  readonly status: number | undefined;
  readonly tookMs: number;
}

export function detectError(url: URL, attempts: readonly Attempt[]): BridgeError {
  const tried = attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
  const message =
    `No MCP server was recognised at ${showUrl(url)}. Tried: ${tried}. ` +
    'Is the path right (/mcp and /sse are common)? If you know what the server speaks, say so with --transport or --protocol.';
  return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts: attempts.map(showAttempt) } });
}

function showAttempt({ request, saw, status }: Attempt): Readonly<Record<string, unknown>> {
  return status === undefined ? { request, saw } : { request, saw, status };
}

/**
 * It speaks modern revisions, but none that is spoken here; or it refuses even the one it offers.
 * @param name its URL or command, as it may be shown
 */
export function noCommonRevisionError(name: string, supported: readonly string[]): BridgeError {
  const theirs = supported
    .slice(0, MAX_SHOWN)
    .map((id) => toPrintable(id, 40))
    .join(', ');
  const ours = [...REVISION_IDS, ...MODERN_REVISION_IDS].join(', ');
  const message =
    findCommonModern(supported) === undefined
      ? `The server at ${name} speaks only revisions of MCP that mcp-portage does not: ${theirs}. Known here: ${ours}. A newer mcp-portage may know them.`
      : `The server at ${name} offers ${theirs} and refuses it at the same time; it has to be repaired.`;
  return new BridgeError('ERR_UPSTREAM_REVISION', message, { data: { supported: supported.slice(0, MAX_SHOWN) } });
}

const MAX_SHOWN = 20;

/** A client that is not let in tries again at once, in another era or another way; after so long it is another attempt. */
export const REPEATED_MS = 60_000;

/**
 * Says in the log why a server that has never been there cannot be used, as its clients are told: who runs the bridge may
 * have no client in sight. That it wants credentials is said once for all their attempts, which cannot change it.
 */
export class FirstFailures {
  readonly #deps: Pick<Deps, 'clock' | 'log'>;
  #last: { readonly message: string; readonly atMs: number } | undefined;

  constructor(deps: Pick<Deps, 'clock' | 'log'>) {
    this.#deps = deps;
  }

  tell(error: BridgeError): void {
    // The login has said it.
    if (isLoginError(error)) return;
    const { clock, log } = this.#deps;
    const { message, code } = error;
    const nowMs = clock.now();
    const last = code === 'ERR_UPSTREAM_AUTH' ? this.#last : undefined;
    const isRepeated = last?.message === message && nowMs - last.atMs < REPEATED_MS;
    log[isRepeated ? 'debug' : 'warn']({ code }, message);
    if (!isRepeated) this.#last = { message, atMs: nowMs };
  }
}
