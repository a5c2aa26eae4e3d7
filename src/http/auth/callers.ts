/** Who sent a request: that is found out, and whether it is served, before anything else is done with it. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { MappedHeader } from '../../config/access.ts';
import { BridgeError } from '../../errors.ts';
import type { AccessPolicy } from '../server/access-policy.ts';
import { type CallerToken, presentedToken, readCallerToken } from './caller-token.ts';

/** The principal of all callers where no authentication is configured. No authenticated caller can have it. */
export const ANONYMOUS = 'anonymous';

export type AuthVerdict =
  /** The name includes who authenticated the caller, so equal names are the same caller. */
  | { readonly kind: 'principal'; readonly principal: string }
  | { readonly kind: 'refused'; readonly refusal: AuthRefusal };

export interface AuthRefusal {
  readonly error: BridgeError;
  /** For `WWW-Authenticate`; undefined: another credential would not help. */
  readonly challenge: string | undefined;
}

/**
 * Finds out who sent a request. Implemented for tokens handed out by the user and for access tokens of an OAuth issuer.
 */
export interface Authenticator {
  /** Calls `decided` once: before it returns where that can be told at once, later where keys have to be fetched. */
  authenticate(request: IncomingMessage, decided: (verdict: AuthVerdict) => void): void;
}

/** Accepts every request, for a server that only this machine can reach or that the user has opened to all. */
export const ALLOW_ANYONE: Authenticator = {
  authenticate: (_request, decided) => decided({ kind: 'principal', principal: ANONYMOUS }),
};

export type Verdict =
  | { readonly kind: 'admitted' }
  /** Its Host, Origin or Sec-Fetch-Site tells that it must not be answered, not even to say why to a web page. */
  | { readonly kind: 'foreign'; readonly error: BridgeError }
  /** It does not say who calls, or not convincingly. */
  | { readonly kind: 'unauthenticated'; readonly refusal: AuthRefusal };

/** For whom something is served: for everybody who comes by a name of this server, or for callers who show who they are. */
export type Audience = 'anybody' | Authenticator;

const ADMITTED: Verdict = { kind: 'admitted' };

/**
 * Decides who is served. Every request that a listener takes passes here before anything else is read of it, whether it is
 * answered, upgraded or only asked about.
 */
export class Admission {
  readonly #policy: AccessPolicy;

  constructor(policy: AccessPolicy) {
    this.#policy = policy;
  }

  /**
   * Calls `decided` once, at once where possible: keys of an issuer may have to be fetched. An admitted caller's name is
   * with its request from then on (`principalOf`).
   */
  admit(request: IncomingMessage, audience: Audience, decided: (verdict: Verdict) => void): void {
    const error = this.#policy.check(request);
    if (error !== undefined) return decided({ kind: 'foreign', error });
    if (audience === 'anybody') return decided(ADMITTED);
    audience.authenticate(request, (verdict) => {
      if (verdict.kind === 'refused') return decided({ kind: 'unauthenticated', refusal: verdict.refusal });
      identifyCaller(request, verdict.principal);
      decided(ADMITTED);
    });
  }

  /**
   * Admits a request that another replica has passed on. That replica has found out who its caller is, and has judged its
   * Host by the names that it answers to.
   */
  admitPassed(request: IncomingMessage, caller: string): Verdict {
    identifyCaller(request, caller);
    return ADMITTED;
  }
}

// ---- What is known of the caller, kept with the request

/** What is known of whoever sent a request. */
interface Caller {
  readonly principal: string;
  /** As it was before what the server is told of the caller became part of it. */
  readonly authenticated: string;
  /** Variables for the process that is started for this caller alone; undefined: none are set. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** The token that is exchanged for one of the server; undefined: none is. */
  readonly token: CallerToken | undefined;
}

/**
 * The caller is a property of the request itself, as an entry of a WeakMap costs the garbage collector more than all
 * else here.
 */
const CALLER = Symbol('caller');

const LEAVE = Symbol('leave');

/** Ends what goes on after the request, such as a WebSocket, in its own words. */
export type Leave = (reason: BridgeError) => void;

type IdentifiedRequest = IncomingMessage & { [CALLER]?: Caller; [LEAVE]?: Leave };

/** Records how the connection of this request ends when its caller is not admitted any more. */
export function endsBy(request: IncomingMessage, leave: Leave): void {
  (request as IdentifiedRequest)[LEAVE] = leave;
}

/** Undefined: its response is cut. */
export function leaveOf(request: IncomingMessage): Leave | undefined {
  return (request as IdentifiedRequest)[LEAVE];
}

/** Records who sent this request. */
export function identifyCaller(request: IncomingMessage, principal: string): void {
  (request as IdentifiedRequest)[CALLER] = {
    ...{ principal, authenticated: principal },
    ...{ environment: undefined, token: undefined },
  };
}

/** Stands between the name of a caller and what else tells it from others. */
const SEPARATOR = '\0';

/**
 * Makes what a server's process is told of its caller part of who it is: with other values it is another caller. The
 * values may be credentials, so the principal has their digest, which is the same in every process.
 * Returns why the request cannot be served.
 */
export function mapCaller(request: IncomingMessage, mapped: readonly MappedHeader[]): BridgeError | undefined {
  const environment = mapHeaders(request, mapped);
  if (environment instanceof BridgeError) return environment;
  const authenticated = principalOf(request);
  const digest = createHash('sha256').update(JSON.stringify(environment)).digest('base64url');
  const principal = `${authenticated}${SEPARATOR}${digest}`;
  (request as IdentifiedRequest)[CALLER] = { principal, authenticated, environment, token: undefined };
  return undefined;
}

/**
 * Makes what a caller's token says besides its subject part of who the caller is: tokens of other clients, or with other
 * scopes, are exchanged for others. Returns the token, or why the request cannot be served.
 */
export function mapCallerToken(request: IncomingMessage): CallerToken | BridgeError {
  const authenticated = principalOf(request);
  const token = readCallerToken(presentedToken(request) ?? '', authenticated);
  if (token === undefined) return NOT_OF_ISSUER;
  const principal = `${authenticated}${SEPARATOR}${token.caller}`;
  (request as IdentifiedRequest)[CALLER] = { principal, authenticated, environment: undefined, token };
  return token;
}

const NOT_OF_ISSUER = new BridgeError(
  'ERR_AUTH_SCOPE',
  'The token of this caller is accepted here, but it is not one of the issuer, and only such tokens can be exchanged for one of this server; call with an access token of the issuer.',
);

/** The name of the caller. Throws for a request that was not let in: serving it would be a bug. */
export function principalOf(request: IncomingMessage): string {
  return callerOf(request).principal;
}

/** The name that the caller was let in by, for another replica that finds out the rest itself; throws as `principalOf` does. */
export function authenticatedNameOf(request: IncomingMessage): string {
  return callerOf(request).authenticated;
}

/** What a principal is called where people read it: without what mapped headers have added. */
export function nameOfPrincipal(principal: string): string {
  const end = principal.lastIndexOf(SEPARATOR);
  return end >= 0 && DIGEST.test(principal.slice(end + 1)) ? principal.slice(0, end) : principal;
}

const DIGEST = /^[\w-]{43}$/;

/** The environment of the caller; throws as `principalOf` does. */
export function environmentOf(request: IncomingMessage): Caller['environment'] {
  return callerOf(request).environment;
}

/** The token that `mapCallerToken` has found; throws as `principalOf` does. */
export function tokenOf(request: IncomingMessage): CallerToken | undefined {
  return callerOf(request).token;
}

function callerOf(request: IncomingMessage): Caller {
  const caller = (request as IdentifiedRequest)[CALLER];
  if (caller === undefined) throw new Error('a request is served that was not let in');
  return caller;
}

/** This is enough for names, groups and settings; environments are small on some systems. */
const MAX_VALUE_LENGTH = 1024;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * The variables a request's headers come to; what is absent or empty sets none. Several of one name are refused: a
 * client could send one beside that of a proxy, and it would be anybody's guess whose counts.
 */
function mapHeaders(
  request: IncomingMessage,
  mapped: readonly MappedHeader[],
): Readonly<Record<string, string>> | BridgeError {
  const environment: Record<string, string> = {};
  for (const { header, variable } of mapped) {
    const values = request.headersDistinct[header] ?? [];
    if (values.length > 1) return refuse(header, 'present only once, but was sent several times');
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
