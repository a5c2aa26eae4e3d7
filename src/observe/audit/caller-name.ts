import { nameOfPrincipal } from '../../http/auth/callers.ts';

/** Longer names of callers are cut. */
const MAX_LENGTH = 512;

/** What a caller is called in the file; undefined: nobody is asked, for the client is at the other end of a pipe. */
export function callerName(principal: string | undefined): string | undefined {
  return principal && nameOfPrincipal(principal).slice(0, MAX_LENGTH);
}
