/** Errors for clients and the log if no way to speak with a server was found. */

import type { Deps } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { isLoginError } from '../../http/login/login-error.ts';
import { showUrl } from '../../http/shown-url.ts';
import { findCommonModern, MODERN_REVISION_IDS, REVISION_IDS } from '../../mcp/vocabulary/revisions.ts';
import { toPrintable } from '../../printable.ts';

/** A question to a server, and its result. */
export interface Attempt {
  /** For example `POST initialize` or `GET for an event stream`. */
  readonly request: string;
  /** The result in plain words. */
  readonly saw: string;
  readonly status: number | undefined;
  readonly tookMs: number;
}

export function detectError(url: URL, attempts: readonly Attempt[]): BridgeError {
  const tried = attempts.map(({ request, saw }) => `${request}: ${saw}`).join('; ');
  const message =
    `No MCP server was recognized at ${showUrl(url)}. Tried: ${tried}. ` +
    'Is the path right (/mcp and /sse are common)? If you know what the server speaks, say so with --transport or --protocol.';
  return new BridgeError('ERR_UPSTREAM_DETECT', message, { data: { attempts: attempts.map(showAttempt) } });
}

function showAttempt({ request, saw, status }: Attempt): Readonly<Record<string, unknown>> {
  return status === undefined ? { request, saw } : { request, saw, status };
}

/**
 * Returns the error for a server that speaks only modern revisions which are unknown here, or that refuses the one it
 * offers.
 * @param name the server's URL or command, as it may be shown
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

/**
 * Time within which the same refusal is not logged again. A client that is refused tries again at once, in another era
 * or over another transport. Later it is a new attempt.
 */
export const REPEATED_MS = 60_000;

/**
 * Logs why a server that was never reached cannot be used, because the user of the bridge may not see the errors of its
 * clients. Missing credentials are logged once for all attempts of that time, since attempts cannot change them.
 */
export class FirstFailures {
  readonly #deps: Pick<Deps, 'clock' | 'log'>;
  #last: { readonly message: string; readonly atMs: number } | undefined;

  constructor(deps: Pick<Deps, 'clock' | 'log'>) {
    this.#deps = deps;
  }

  tell(error: BridgeError): void {
    // The login has logged it.
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
