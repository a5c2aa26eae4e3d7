/** Callers that a configuration file names, for whom alone something is meant. */
import type { AccessConfig } from '../../../config/access.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';

/** Translates a caller's name: `subject:…` is a subject of the issuer, any other text is the name of a --auth-token. */
export function principalOf(caller: string, { auth }: AccessConfig): string {
  const subject = /^subject:(.+)$/s.exec(caller)?.[1];
  return subject === undefined ? `token:${caller}` : `${auth?.oauth?.issuer ?? ''}#${subject}`;
}

/** A list of callers in a file. */
interface CallerList {
  readonly place: string;
  readonly key: string;
  /** The right of these callers, after "who may". */
  readonly use: string;
}

/** Returns the error for a list of callers where no caller has a name. */
export function refuseUnauthenticated(given: GivenOptions, { place, key, use }: CallerList): BridgeError {
  return new BridgeError(
    'ERR_CONFIG_COMBINATION',
    `${place}: ${key} says who may ${use}, but callers are not authenticated; add ${given.nameOf('authToken')} or ${given.nameOf('authIssuer')}, or leave ${key} out.`,
  );
}
