/** Exchanges the tokens of callers for tokens of the server. [RFC 8693] */
import { setMaxListeners } from 'node:events';
import { type AuthorizationServer, genericTokenEndpointRequest } from 'oauth4webapi';
import { RecentNames } from '../../collections/bounded-collections.ts';
import type { ExchangeConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { CallerToken } from '../auth/caller-token.ts';
import type { CallerCredentials } from '../client/caller-credentials.ts';
import type { HttpClient } from '../client/client.ts';
import type {
  CredentialHeaders,
  CredentialRefusal,
  CredentialRenewal,
  Credentials,
  RenewalOutcome,
} from '../client/credentials.ts';
import { CALLER_HEADER } from '../headers.ts';
import { showUrl } from '../shown-url.ts';
import { AddressGuard } from './address-guard.ts';
import { useConfigured } from './client-identity.ts';
import { canonicalUri, findAuthorizationServer } from './discover.ts';
import { loginError, quoteOthers } from './login-error.ts';
import { createLoginFetch, type LoginFetch } from './login-fetch.ts';
import { correctionsOf } from './login-flow.ts';
import type { Tokens } from './login-store.ts';
import { patiently, pauseAfter } from './patience.ts';
import { beginningMembers, chooseParameters } from './request-parameters.ts';
import {
  askEndpoint,
  authenticateAs,
  type Endpoint,
  scopeParameter,
  type TokenContext,
  toTokens,
} from './token-requests.ts';

/**
 * Limit on the callers whose tokens are kept, above the number of sessions in most deployments. The least recently used
 * caller is dropped first.
 */
export const MAX_CALLERS = 10_000;
/**
 * Limit on the characters of all kept tokens. Usual tokens have one or two thousand, so MAX_CALLERS is reached first.
 */
export const MAX_KEPT_CHARACTERS = 64 * 1024 * 1024;
/**
 * For this long after a refusal, a caller gets the same refusal again, because neither its token nor the decision
 * changes.
 */
const REFUSAL_PAUSE_MS = 10_000;
/** The minimum interval between searches for expired tokens. A search through many callers takes a millisecond. */
const LOOK_MS = 60_000;
/** The metadata of the authorization server is used for this long, the same time as the issuer's keys. */
const METADATA_MS = 10 * 60_000;

/** [RFC 8693 2.1] */
const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
/** [RFC 8693 3] */
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

export interface ExchangeOptions {
  readonly server: URL;
  readonly config: ExchangeConfig;
  /**
   * Sends requests to the authorization server, without the headers and credentials of the server. Closed with this
   * object.
   */
  readonly http: HttpClient;
  readonly deps: Pick<Deps, 'clock' | 'wallClock' | 'log'>;
}

/**
 * The exchanged tokens of all callers of one server. They are kept only in the memory of this process; other processes
 * exchange their own.
 */
export class ExchangedTokens implements CallerCredentials {
  readonly #options: ExchangeOptions;
  readonly #exchange: TokenExchange;
  readonly #closed = new AbortController();
  readonly #callers = new RecentNames<ExchangedToken>({ count: MAX_CALLERS, length: MAX_KEPT_CHARACTERS });

  /** Expired tokens are removed when a new caller arrives, but not before this time. */
  #nextLookMs = Number.NEGATIVE_INFINITY;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#exchange = new TokenExchange(options);
    // Every caller with a retried exchange adds a listener to this signal.
    setMaxListeners(0, this.#closed.signal);
  }

  /** Called when a request with this token has arrived. */
  note(shown: CallerToken): void {
    const known = this.#callers.get(shown.caller);
    if (known === undefined) this.#forgetEnded();
    const token =
      known ??
      new ExchangedToken({ ...this.#options.deps, shown, source: this.#exchange, signal: this.#closed.signal });
    token.note(shown);
    this.#keep(shown.caller, token);
  }

  of(forwarded: Readonly<Record<string, string>> | undefined): Credentials {
    const caller = forwarded?.[CALLER_HEADER] ?? '';
    const token = this.#callers.get(caller);
    if (token === undefined) return OF_NOBODY;
    this.#keep(caller, token);
    return token;
  }

  /** Marks the caller as the most recently used one. */
  #keep(caller: string, token: ExchangedToken): void {
    this.#callers.set(caller, token, token.length);
  }

  #forgetEnded(): void {
    const nowMs = this.#options.deps.clock.now();
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + LOOK_MS;
    for (const [caller, token] of [...this.#callers]) if (token.isOver) this.#callers.delete(caller);
  }

  close(): void {
    this.#closed.abort(SHUTTING_DOWN);
    this.#options.http.close();
  }
}

const NO_TOKEN = loginError(
  'No token of this caller is known that could be exchanged for one of the server',
  'Each of its requests has to carry an access token of the issuer.',
);

/** The credentials of requests that belong to no caller, and of callers that were dropped. */
const OF_NOBODY: Credentials = {
  show: () => {
    throw NO_TOKEN;
  },
  renewal: undefined,
  close: () => {},
};

// ---- one caller

interface ExchangedTokenOptions extends Pick<Deps, 'clock' | 'wallClock' | 'log'> {
  readonly shown: CallerToken;
  readonly source: TokenExchange;
  /** Aborted when the bridge shuts down. */
  readonly signal: AbortSignal;
}

/**
 * - `none`: the caller's token has not been exchanged yet.
 * - `exchanging`: an exchange is in progress, and all requests of the caller wait for its outcome. `authorization`
 *   contains the previous token.
 * - `exchanged`: there is a token for the server.
 * - `failed`: requests of the caller get the same error until `untilMs`.
 */
type ExchangeState =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'exchanging';
      readonly outcome: Promise<RenewalOutcome>;
      readonly authorization: string | undefined;
    }
  | { readonly kind: 'exchanged'; readonly authorization: string; readonly renewAtMs: number | undefined }
  | { readonly kind: 'failed'; readonly error: BridgeError; readonly untilMs: number };

const NONE: ExchangeState = { kind: 'none' };
const RENEWED: RenewalOutcome = { kind: 'renewed' };

/** The credentials of one caller for the server. */
class ExchangedToken implements Credentials, CredentialRenewal {
  readonly #options: ExchangedTokenOptions;
  /** The latest token that the caller has sent. Each of the caller's devices may have its own. */
  #shown: CallerToken;
  #state: ExchangeState = NONE;
  /** The time at which the server last refused an exchanged token, so that another exchange began. */
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  #lastUnderWayMs: number | undefined;

  constructor(options: ExchangedTokenOptions) {
    this.#options = options;
    this.#shown = options.shown;
  }

  /** Replaces the caller's token if this one is newer, and drops the token that was exchanged for the previous one. */
  note(shown: CallerToken): void {
    if (shown.issuedAt <= this.#shown.issuedAt && !this.isOver) return;
    this.#shown = shown;
    this.#refusedAtMs = Number.NEGATIVE_INFINITY;
    // A running exchange checks by itself whether the token has changed.
    if (this.#state.kind !== 'exchanging') this.#state = NONE;
  }

  get isOver(): boolean {
    return this.#options.wallClock() >= this.#shown.endsAtMs;
  }

  /** The number of characters that are kept for this caller. */
  get length(): number {
    const state = this.#state;
    return this.#shown.token.length + ('authorization' in state ? (state.authorization?.length ?? 0) : 0);
  }

  get renewal(): CredentialRenewal {
    return this;
  }

  get lastUnderWayMs(): number | undefined {
    return this.#state.kind === 'exchanging' ? this.#options.clock.now() : this.#lastUnderWayMs;
  }

  show(): CredentialHeaders {
    const state = this.#state;
    if (state.kind === 'failed') throw state.error;
    const authorization = this.isOver || state.kind === 'none' ? undefined : state.authorization;
    if (authorization === undefined) throw this.#options.signal.aborted ? SHUTTING_DOWN : NO_TOKEN;
    return { authorization };
  }

  beforeRequest(): Promise<void> | undefined {
    const { clock, wallClock, signal } = this.#options;
    const state = this.#state;
    if (this.isOver || signal.aborted) return undefined;
    if (state.kind === 'failed' && clock.now() < state.untilMs) return undefined;
    if (state.kind === 'exchanged' && (state.renewAtMs === undefined || wallClock() < state.renewAtMs))
      return undefined;
    return this.#begin().then(() => {});
  }

  accepted(): void {}

  /** Exchanged tokens are not bound to a key, so their requests carry no proof and need no nonce. */
  takesNonce(): boolean {
    return false;
  }

  /**
   * Exchanges the caller's token once more after a 401. If the server soon refuses the new token as well, requests
   * fail.
   */
  refused({ status, authorization }: CredentialRefusal): Promise<RenewalOutcome> | undefined {
    const { clock, source, signal } = this.#options;
    const state = this.#state;
    if (status !== 401 || this.isOver || signal.aborted) return undefined;
    if (state.kind === 'exchanged' && authorization !== state.authorization) return Promise.resolve(RENEWED);
    if (state.kind === 'failed') return Promise.resolve({ kind: 'failed', error: state.error });
    if (state.kind === 'exchanged') {
      const nowMs = clock.now();
      if (nowMs - this.#refusedAtMs < REFUSAL_PAUSE_MS) {
        return Promise.resolve({ kind: 'failed', error: source.notAccepted() });
      }
      this.#refusedAtMs = nowMs;
    }
    return this.#begin();
  }

  close(): void {}

  /** Starts an exchange, or joins the one in progress. */
  #begin(): Promise<RenewalOutcome> {
    const state = this.#state;
    if (state.kind === 'exchanging') return state.outcome;
    const outcome = this.#run().finally(() => {
      this.#lastUnderWayMs = this.#options.clock.now();
    });
    const authorization = state.kind === 'exchanged' ? state.authorization : undefined;
    this.#state = { kind: 'exchanging', outcome, authorization };
    return outcome;
  }

  async #run(): Promise<RenewalOutcome> {
    const { clock, log, source, signal } = this.#options;
    for (;;) {
      const shown = this.#shown;
      try {
        const { accessToken, renewAtMs } = await patiently(() => source.exchange(shown.token), { clock, log, signal });
        // The caller has sent another token meanwhile, so the token exchanged for the old one is dropped.
        if (shown !== this.#shown) continue;
        this.#state = { kind: 'exchanged', authorization: `Bearer ${accessToken}`, renewAtMs };
        return RENEWED;
      } catch (thrown) {
        if (shown !== this.#shown && !signal.aborted) continue;
        const error = source.explain(thrown);
        const pauseMs = pauseAfter(toBridgeError(thrown), REFUSAL_PAUSE_MS);
        this.#state = { kind: 'failed', error, untilMs: clock.now() + pauseMs };
        if (!signal.aborted) log.warn({ code: error.code }, error.message);
        return { kind: 'failed', error };
      }
    }
  }
}

// ---- the authorization server

interface KnownServer {
  readonly authorizationServer: AuthorizationServer;
  readonly untilMs: number;
}

/** Sends exchanges to the authorization server of the callers, as the client that the user has registered there. */
class TokenExchange {
  readonly #options: ExchangeOptions;
  readonly #fetch: LoginFetch;
  #known: KnownServer | undefined;
  #looking: Promise<AuthorizationServer> | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    // The user has configured the issuer, so its metadata may name addresses in the network where the issuer itself is.
    this.#fetch = createLoginFetch(options.http, new AddressGuard(new URL(options.config.issuer)));
  }

  /** Rejects with ERR_UPSTREAM_*. */
  async exchange(token: string): Promise<Pick<Tokens, 'accessToken' | 'renewAtMs'>> {
    const { server, config, deps } = this.#options;
    const authorizationServer = await this.#find();
    const context: TokenContext = {
      authorizationServer,
      client: useConfigured(config.client, authorizationServer, undefined),
      proof: config.client.proof,
      parameters: chooseParameters(config, canonicalUri(server), undefined),
      token: 'access',
      fetch: this.#fetch,
      wallClock: deps.wallClock,
    };
    const members = {
      // A configured parameter may name another audience, because some authorization servers identify servers by name.
      audience: context.parameters.resource ?? canonicalUri(server),
      ...beginningMembers(context.parameters),
      ...scopeParameter(config.scopes),
      ...{ subject_token: token, subject_token_type: ACCESS_TOKEN, requested_token_type: ACCESS_TOKEN },
    };
    const answer = await askEndpoint(context, TOKEN_ENDPOINT, async (as, client, options) =>
      genericTokenEndpointRequest(as, client, await authenticateAs(context), GRANT, members, options),
    ).catch((thrown: unknown) => {
      // The cached metadata may be out of date.
      this.#known = undefined;
      throw thrown;
    });
    if (answer.kind !== 'given') throw this.#refused(answer);
    // [RFC 8693 2.2.1] A token of another type would be useless. If the answer names no type, the requested one is
    // assumed.
    const { issued_token_type: issued = ACCESS_TOKEN } = answer.members;
    if (issued !== ACCESS_TOKEN) {
      const found = typeof issued === 'string' ? `of the type ${quoteOthers(issued)}` : 'without a type';
      const problem = `${config.issuer} gave a token ${found} in exchange for that of this caller`;
      throw loginError(problem, `Expected ${ACCESS_TOKEN}. Tell its operators.`);
    }
    const tokens = toTokens(answer.members, config.scopes, context);
    if (tokens === undefined) throw new Error('an access token was asked for');
    return tokens;
  }

  #refused({ reason, isClientUnknown = false }: { readonly reason: string; readonly isClientUnknown?: boolean }) {
    const { server, config } = this.#options;
    return loginError(
      `${config.issuer} does not exchange the token of this caller for one of ${showUrl(server)} (${reason})`,
      isClientUnknown
        ? 'Check the id and the secret of the client; --oauth-auth-method says how it shows them.'
        : `Log in again; if that does not help, ${config.issuer} has to allow it to the client of --oauth-client-id.`,
    );
  }

  /** Creates the error for a caller whose exchanged token the server has refused twice in a row. */
  notAccepted(): BridgeError {
    const { server, config } = this.#options;
    return loginError(
      `The server at ${showUrl(server)} does not accept the token that ${config.issuer} gave in exchange for that of this caller (401)`,
      'Its audience or scope may be wrong: --oauth-resource, --oauth-scope and --oauth-param audience=… choose them.',
    );
  }

  /** Adds that the exchange has failed, if the error could be taken for one of the MCP server. */
  explain(thrown: unknown): BridgeError {
    const error = toBridgeError(thrown);
    const { code, message, retryAfterMs } = error;
    if (['ERR_UPSTREAM_AUTH', 'ERR_INTERNAL', SHUTTING_DOWN.code].includes(code)) return error;
    const { server } = this.#options;
    return loginError(
      `The token of this caller could not be exchanged for one of ${showUrl(server)}: ${message}`,
      '',
      retryAfterMs,
    );
  }

  /** Resolves with the authorization server. Concurrent calls share one search. */
  async #find(): Promise<AuthorizationServer> {
    const { clock } = this.#options.deps;
    if (this.#known !== undefined && clock.now() < this.#known.untilMs) return this.#known.authorizationServer;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<AuthorizationServer> {
    const { config, deps } = this.#options;
    const { issuer, tokenEndpoint } = config;
    const found = await findAuthorizationServer(issuer, {
      issuer: undefined,
      grant: 'client-credentials',
      corrections: correctionsOf(config),
      warn: (text) => deps.log.warn(text),
      fetch: this.#fetch,
      adviseOtherName: () => 'Check --auth-issuer.',
    });
    const named = tokenEndpoint === undefined ? undefined : { issuer, token_endpoint: tokenEndpoint.href };
    const authorizationServer = found ?? named;
    if (authorizationServer === undefined) {
      const problem = `${issuer} publishes no metadata that names its token endpoint, where tokens of callers are exchanged`;
      throw loginError(problem, 'Name it with --oauth-token-endpoint.');
    }
    this.#known = { authorizationServer, untilMs: deps.clock.now() + METADATA_MS };
    return authorizationServer;
  }
}

const TOKEN_ENDPOINT: Endpoint = {
  name: 'token endpoint',
  gives: 'access_token',
  wayOut: 'It may not know the exchange of tokens (RFC 8693), or not allow it to this client; tell its operators.',
};
