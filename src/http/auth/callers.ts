/**
 * Identifies the caller of a request and decides whether it is served, before any other part of the request is
 * processed.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { MappedHeader } from '../../config/access.ts';
import { BridgeError } from '../../errors.ts';
import type { AccessPolicy } from '../server/access-policy.ts';
import { type CallerToken, presentedToken, readCallerToken } from './caller-token.ts';

/** The principal of all callers if no authentication is configured. No authenticated caller can have it. */
export const ANONYMOUS = 'anonymous';

export type AuthVerdict =
  /** `principal` includes the authority that authenticated the caller, so equal names mean the same caller. */
  | { readonly kind: 'principal'; readonly principal: string }
  | { readonly kind: 'refused'; readonly refusal: AuthRefusal };

export interface AuthRefusal {
  readonly error: BridgeError;
  /** The value of `WWW-Authenticate`; undefined if another credential would not help. */
  readonly challenge: string | undefined;
}

/**
 * Identifies the caller of a request. Implemented for tokens that the user has handed out and for access tokens of an
 * OAuth issuer.
 */
export interface Authenticator {
  /** Calls `decided` once: before it returns if the decision needs no waiting, or later if keys have to be fetched. */
  authenticate(request: IncomingMessage, decided: (verdict: AuthVerdict) => void): void;
}

/** Accepts every request, for a server that only this machine can reach or that the user has opened to all. */
export const ALLOW_ANYONE: Authenticator = {
  authenticate: (_request, decided) => decided({ kind: 'principal', principal: ANONYMOUS }),
};

/**
 * - `admitted`: the request is served.
 * - `foreign`: Host, Origin or Sec-Fetch-Site forbid an answer, even one that tells a web page the reason.
 * - `unauthenticated`: the request does not identify its caller, or its credential is not accepted.
 */
export type Verdict =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'foreign'; readonly error: BridgeError }
  | { readonly kind: 'unauthenticated'; readonly refusal: AuthRefusal };

/** The callers that are served: `anybody` who uses a name of this server, or only callers that authenticate. */
export type Audience = 'anybody' | Authenticator;

const ADMITTED: Verdict = { kind: 'admitted' };

/**
 * Decides which requests are served. Every request of a listener is checked here before anything else in it is read.
 * Upgrades are checked, too, as are routes that only ask whether their caller would be admitted.
 */
export class Admission {
  readonly #policy: AccessPolicy;

  constructor(policy: AccessPolicy) {
    this.#policy = policy;
  }

  /**
   * Calls `decided` once, before it returns if possible; an issuer's keys may have to be fetched first. From then on,
   * `principalOf` returns the name of an admitted caller.
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
   * Admits a request that another replica has forwarded. That replica has authenticated the caller, and has checked the
   * Host against the names that it serves.
   */
  admitPassed(request: IncomingMessage, caller: string): Verdict {
    identifyCaller(request, caller);
    return ADMITTED;
  }
}

// ---- The caller, kept with the request

/** The identified caller of a request. */
interface Caller {
  readonly principal: string;
  /** The principal before mapped headers or claims of a token were added to it. */
  readonly authenticated: string;
  /** Environment variables for the process that is started for this caller alone; undefined if none are set. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** The token that is exchanged for one of the server; undefined if none is exchanged. */
  readonly token: CallerToken | undefined;
}

/**
 * The caller is stored as a property of the request, because an entry in a WeakMap costs the garbage collector more
 * than everything else here.
 */
const CALLER = Symbol('caller');

/** The caller that another replica has authenticated before it passed the request on. */
const PASSED_CALLER = Symbol('passed caller');

const LEAVE = Symbol('leave');

/** Ends a connection that outlives the request, such as a WebSocket, with a suitable message. */
export type Leave = (reason: BridgeError) => void;

type IdentifiedRequest = IncomingMessage & { [CALLER]?: Caller; [PASSED_CALLER]?: string; [LEAVE]?: Leave };

/** Records how the connection of this request is closed when its caller is no longer admitted. */
export function endsBy(request: IncomingMessage, leave: Leave): void {
  (request as IdentifiedRequest)[LEAVE] = leave;
}

/** Returns the recorded function; undefined if the response is simply cut off. */
export function leaveOf(request: IncomingMessage): Leave | undefined {
  return (request as IdentifiedRequest)[LEAVE];
}

/**
 * Records that another replica has passed the request on, and the caller that it has authenticated. Only requests that
 * arrive on a link between replicas are marked.
 */
export function recordPassedCaller(request: IncomingMessage, caller: string): void {
  (request as IdentifiedRequest)[PASSED_CALLER] = caller;
}

/** Returns the caller that another replica has authenticated, or undefined if the request came from its client. */
export function passedCallerOf(request: IncomingMessage): string | undefined {
  return (request as IdentifiedRequest)[PASSED_CALLER];
}

/** Returns true if another replica has passed the request on. Such a request is not passed on again. */
export function isPassed(request: IncomingMessage): boolean {
  return passedCallerOf(request) !== undefined;
}

/** Records the caller of this request. */
export function identifyCaller(request: IncomingMessage, principal: string): void {
  (request as IdentifiedRequest)[CALLER] = {
    ...{ principal, authenticated: principal },
    ...{ environment: undefined, token: undefined },
  };
}

/** Separates the name of a caller from the digest that distinguishes it further. */
const SEPARATOR = '\0';

/**
 * Adds the mapped headers, which become environment variables of a server's process, to the identity of the caller:
 * other values mean another caller. The values may be credentials, so the principal contains only their digest, which
 * is the same in every process. What `mapCallerToken` has found before stays. Returns an error if the request cannot be
 * served.
 */
export function mapCaller(request: IncomingMessage, mapped: readonly MappedHeader[]): BridgeError | undefined {
  const environment = mapHeaders(request, mapped);
  if (environment instanceof BridgeError) return environment;
  const { authenticated, token } = callerOf(request);
  const shown = token === undefined ? environment : [environment, token.caller];
  const digest = createHash('sha256').update(JSON.stringify(shown)).digest('base64url');
  const principal = `${authenticated}${SEPARATOR}${digest}`;
  (request as IdentifiedRequest)[CALLER] = { principal, authenticated, environment, token };
  return undefined;
}

/**
 * Adds the client and the scopes of a caller's token to the identity of the caller, because tokens with other values
 * are exchanged for other tokens. Returns the token, or an error if the request cannot be served.
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

/** Returns the name of the caller. Throws for a request that was not admitted: serving it would be a bug. */
export function principalOf(request: IncomingMessage): string {
  return callerOf(request).principal;
}

/**
 * Returns the name with which the caller was admitted, for another replica that determines the rest itself. Throws for
 * a request that was not admitted.
 */
export function authenticatedNameOf(request: IncomingMessage): string {
  return callerOf(request).authenticated;
}

/** Returns the part of a principal that people read, without the digest of mapped headers or claims. */
export function nameOfPrincipal(principal: string): string {
  const end = principal.lastIndexOf(SEPARATOR);
  return end >= 0 && DIGEST.test(principal.slice(end + 1)) ? principal.slice(0, end) : principal;
}

const DIGEST = /^[\w-]{43}$/;

/** Returns the environment variables of the caller. Throws for a request that was not admitted. */
export function environmentOf(request: IncomingMessage): Caller['environment'] {
  return callerOf(request).environment;
}

/** Returns the token that `mapCallerToken` has found. Throws for a request that was not admitted. */
export function tokenOf(request: IncomingMessage): CallerToken | undefined {
  return callerOf(request).token;
}

function callerOf(request: IncomingMessage): Caller {
  const caller = (request as IdentifiedRequest)[CALLER];
  if (caller === undefined) throw new Error('a request is served that was not let in');
  return caller;
}

/**
 * Limit on the length of a header's value. It suffices for names, groups and settings; some systems limit the size of
 * an environment.
 */
const MAX_VALUE_LENGTH = 1024;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Returns the environment variables for the headers of a request; absent and empty headers set none. Several headers of
 * one name are rejected: a client could send one in addition to that of a proxy, and it would be unclear which one
 * counts.
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
