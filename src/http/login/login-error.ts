import { BridgeError } from '../../errors.ts';
import { toPrintable } from '../../printable.ts';

/** Whoever is to blame for a failed login writes these texts; they end up in logs and in answers to clients. */
const MAX_SHOWN_LENGTH = 200;
/** Problems name issuers and addresses, which are others' texts, too. */
const MAX_PROBLEM_LENGTH = 600;

/** A login that came to nothing. Nothing of what was sent or received is kept with it: that holds codes and tokens. */
export function loginError(problem: string, wayOut: string): BridgeError {
  const shown = toPrintable(problem.replace(/\s+/g, ' '), MAX_PROBLEM_LENGTH).replace(/\.$/, '');
  const message = `${shown}. ${wayOut}`.trim();
  return new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { phase: 'login' } });
}

/** Whether it is about a login, which has said in the log what became of it. */
export function isLoginError({ data }: BridgeError): boolean {
  return data?.phase === 'login';
}

/** Text of others, fit to be shown: one line of printable ASCII. */
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
