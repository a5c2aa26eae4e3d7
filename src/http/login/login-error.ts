import { BridgeError } from '../../errors.ts';
import { toPrintable } from '../../printable.ts';

/** These texts come from the server that makes a login fail, and end up in logs and in answers to clients. */
const MAX_SHOWN_LENGTH = 200;
/** Problems name issuers and addresses, which come from servers as well. */
const MAX_PROBLEM_LENGTH = 600;

/**
 * The error of a login that failed. It keeps nothing of what was sent or received, which holds codes and tokens.
 * @param retryAfterMs given where the same may succeed later
 */
export function loginError(problem: string, wayOut: string, retryAfterMs?: number): BridgeError {
  const shown = toPrintable(problem.replace(/\s+/g, ' '), MAX_PROBLEM_LENGTH).replace(/\.$/, '');
  const message = `${shown}. ${wayOut}`.trim();
  const passing = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { phase: 'login' }, ...passing });
}

/** Whether the error is that of a login, which has logged it already. */
export function isLoginError({ data }: BridgeError): boolean {
  return data?.phase === 'login';
}

/** Makes a server's text fit to be shown: one line of printable ASCII. */
export function quoteOthers(text: string): string {
  return cut(text.replace(/[^\x20-\x7e]+/g, ' ').trim(), MAX_SHOWN_LENGTH);
}

function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** `error` and `error_description` as OAuth has them everywhere. */
export function describeOAuthError(error: string, description: string | null | undefined): string {
  const said = description ? `: ${quoteOthers(description)}` : '';
  return `${quoteOthers(error)}${said}`;
}
