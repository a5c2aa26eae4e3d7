import { BridgeError } from '../../errors.ts';

/** Whoever is to blame for a failed login writes these texts; they end up in logs and in answers to clients. */
const MAX_SHOWN_LENGTH = 200;

/** A login that came to nothing. Nothing of what was sent or received is kept with it: that holds codes and tokens. */
export function loginError(problem: string, wayOut: string): BridgeError {
  const message = `${problem.replace(/\.$/, '')}. ${wayOut}`.trim();
  return new BridgeError('ERR_UPSTREAM_AUTH', message, { data: { phase: 'login' } });
}

/** Text of others, fit to be shown: one line of printable ASCII. */
export function quoteOthers(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]+/g, ' ').trim();
  return printable.length <= MAX_SHOWN_LENGTH ? printable : `${printable.slice(0, MAX_SHOWN_LENGTH)}…`;
}

/** `error` and `error_description` as OAuth has them everywhere. */
export function describeOAuthError(error: string, description: string | null | undefined): string {
  const said = description ? `: ${quoteOthers(description)}` : '';
  return `${quoteOthers(error)}${said}`;
}
