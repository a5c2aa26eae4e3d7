import { BridgeError } from '../../errors.ts';
import { toPrintable } from '../../printable.ts';

/**
 * Limit on the length of texts that come from the failing server, because they appear in logs and in answers to
 * clients.
 */
const MAX_SHOWN_LENGTH = 200;
/** Limit on the length of a problem. Problems contain issuers and addresses, which come from servers as well. */
const MAX_PROBLEM_LENGTH = 600;

/**
 * Creates the error of a failed login. It has no cause, because requests and responses contain codes and tokens.
 * @param retryAfterMs given if the same request may succeed later
 */
export function loginError(problem: string, wayOut: string, retryAfterMs?: number): BridgeError {
  const shown = toPrintable(problem.replace(/\s+/g, ' '), MAX_PROBLEM_LENGTH).replace(/\.$/, '');
  const message = `${shown}. ${wayOut}`.trim();
  const passing = retryAfterMs === undefined ? {} : { retryAfterMs };
  return new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { phase: 'login' }, ...passing });
}

/** True for the errors of logins, which have been logged already. */
export function isLoginError({ data }: BridgeError): boolean {
  return data?.phase === 'login';
}

/** Makes a server's text safe to show: one line of printable ASCII, cut to a maximum length. */
export function quoteOthers(text: string): string {
  return cut(text.replace(/[^\x20-\x7e]+/g, ' ').trim(), MAX_SHOWN_LENGTH);
}

function cut(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** Joins the members `error` and `error_description` of an OAuth response. */
export function describeOAuthError(error: string, description: string | null | undefined): string {
  const said = description ? `: ${quoteOthers(description)}` : '';
  return `${quoteOthers(error)}${said}`;
}
