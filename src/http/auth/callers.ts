import type { IncomingMessage } from 'node:http';
import type { MappedHeader } from '../../config.ts';
import { BridgeError } from '../../errors.ts';
import type { Authenticator, AuthRefusal } from './authenticator.ts';

interface Caller {
  readonly principal: string;
  /** For the process that is started for this caller alone; undefined: processes are told nothing. */
  readonly environment: Readonly<Record<string, string>> | undefined;
}

/** Kept with the request itself: a WeakMap costs the collector more for each than all else that is done here. */
const CALLER = Symbol('caller');

type IdentifiedRequest = IncomingMessage & { [CALLER]?: Caller };

/** Who sent each request under way: found out before anything else is done with it, asked by whoever serves it. */
export class Callers {
  readonly #authenticator: Authenticator;
  readonly #mapped: readonly MappedHeader[];

  constructor(authenticator: Authenticator, mapped: readonly MappedHeader[] = []) {
    this.#authenticator = authenticator;
    this.#mapped = mapped;
  }

  /** Calls `decided` once, at once where possible; undefined: welcome. */
  identify(request: IncomingMessage, decided: (refusal: AuthRefusal | undefined) => void): void {
    this.#authenticator.authenticate(request, (verdict) => {
      if (verdict.kind === 'refused') return decided(verdict.refusal);
      const caller = this.#describe(request, verdict.principal);
      if (caller instanceof BridgeError) return decided({ error: caller, challenge: undefined });
      (request as IdentifiedRequest)[CALLER] = caller;
      decided(undefined);
    });
  }

  /** What a process was told of its caller belongs to the caller's name: with other values it is another caller. */
  #describe(request: IncomingMessage, principal: string): Caller | BridgeError {
    if (this.#mapped.length === 0) return { principal, environment: undefined };
    const environment = mapHeaders(request, this.#mapped);
    if (environment instanceof BridgeError) return environment;
    return { principal: JSON.stringify([principal, environment]), environment };
  }

  /** Throws for a request that was not let in: serving it would be a bug. */
  readonly principalOf = (request: IncomingMessage): string => this.#find(request).principal;

  /** The environment of the caller; throws as `principalOf` does. */
  readonly environmentOf = (request: IncomingMessage): Caller['environment'] => this.#find(request).environment;

  #find(request: IncomingMessage): Caller {
    const caller = (request as IdentifiedRequest)[CALLER];
    if (caller === undefined) throw new Error('a request is served that was not let in');
    return caller;
  }
}

/** Enough for names, groups and settings; environments are small on some systems. */
const MAX_VALUE_LENGTH = 1024;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * The variables a request's headers come to; what is absent or empty sets none. Several of one name are refused: a
 * client could send one beside that of a proxy, and it would be anybody's guess whose counts.
 */
export function mapHeaders(
  request: IncomingMessage,
  mapped: readonly MappedHeader[],
): Readonly<Record<string, string>> | BridgeError {
  const environment: Record<string, string> = {};
  for (const { header, variable } of mapped) {
    const values = request.headersDistinct[header] ?? [];
    if (values.length > 1) return refuse(header, 'once, and it came more than once');
    const [value = ''] = values;
    if (value.length > MAX_VALUE_LENGTH) return refuse(header, `at most ${MAX_VALUE_LENGTH} characters`);
    if (!PRINTABLE.test(value)) return refuse(header, 'printable ASCII');
    if (value !== '') environment[variable] = value;
  }
  return environment;
}

function refuse(header: string, expected: string): BridgeError {
  return new BridgeError('ERR_HTTP_HEADER', `The header ${header} is used here and must be ${expected}.`);
}
