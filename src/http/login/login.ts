import type { LoginConfig } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { HttpClient } from '../client/client.ts';
import type { CredentialRefusal, CredentialRenewal, Credentials, RenewalOutcome } from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import type { OpenBrowser } from './authorize-in-browser.ts';
import { loginError } from './login-error.ts';
import type { LoginFlow } from './login-flow.ts';
import { LoginStore, type StoredLogin, type Tokens } from './login-store.ts';

/** After a failure calls fail the same way for so long: a client that tries again and again opens no heap of pages. */
export const FAILURE_PAUSE_MS = 30_000;
/** Between an answer to one process and the file that tells the others. */
const RACE_MS = 500;
/** A server that names other scopes each time would otherwise send the user to the browser for ever. */
const MAX_STEP_UPS = 16;

export interface LoginOptions {
  readonly server: URL;
  readonly config: LoginConfig;
  /** For the requests of a login, without what is meant for the server. */
  readonly createClient: () => HttpClient;
  readonly openBrowser: OpenBrowser;
  readonly deps: Deps;
}

/**
 * What is known of the token in use:
 * - `kept`: it is from an earlier run, or of another process.
 * - `given`: a user, or a secret, has just got it, and the server has not taken it yet.
 * - `refreshed`: a refresh token has just got it, and the server has not taken it yet.
 * - `accepted`: the server has taken it.
 */
type Standing = 'kept' | 'given' | 'refreshed' | 'accepted';

type LoginWithTokens = StoredLogin & { readonly tokens: Tokens };

/**
 * What the server is shown. Changed in `#use` and `accepted` only, but for `refreshAhead`.
 * - `none`: there is no token; at most an earlier login has left a registration.
 * - `token`: there is one. `refreshAhead` is `tried` once a refresh before the time of its expiry has begun: where that
 *   comes to nothing, the token is used as long as the server takes it.
 */
type Credential =
  | { readonly kind: 'none'; readonly login: StoredLogin | undefined }
  | {
      readonly kind: 'token';
      readonly login: LoginWithTokens;
      readonly authorization: string;
      readonly standing: Standing;
      readonly refreshAhead: 'untried' | 'tried';
    };

/**
 * - `idle`: nobody waits for a token.
 * - `renewing`: a login or a refresh is under way, and all who need a token wait for its outcome.
 * - `failed`: the latest login came to nothing; until `untilMs` whoever asks for another gets the same outcome.
 */
type Renewal =
  | { readonly kind: 'idle' }
  | { readonly kind: 'renewing'; readonly outcome: Promise<RenewalOutcome> }
  | { readonly kind: 'failed'; readonly outcome: RenewalOutcome; readonly untilMs: number };

const IDLE: Renewal = { kind: 'idle' };
const RENEWED: RenewalOutcome = { kind: 'renewed' };
const REFUSED: RenewalOutcome = { kind: 'refused' };

/** The tokens for one server, got when it asks for them. One login at a time, whoever waits for it. */
export class Login implements Credentials, CredentialRenewal {
  readonly #options: LoginOptions;
  readonly #store: LoginStore;
  readonly #closed = new AbortController();
  #credential: Credential = { kind: 'none', login: undefined };
  #renewal: Renewal = IDLE;
  /** A login happened in this process. */
  #hasLoggedIn = false;
  /** Scopes that users were sent to the browser for. */
  readonly #steppedUp = new Set<string>();
  /** The file has the latest login, unless it could not be written. */
  #isStored = true;
  /** Where the latest refusal came from. */
  #peerAddress: string | undefined;
  #client: HttpClient | undefined;

  /** Throws ERR_CONFIG_OPTION when a login that is to be forgotten cannot be. */
  constructor(options: LoginOptions) {
    this.#options = options;
    const { server, config, deps } = options;
    this.#store = new LoginStore(server, config, deps.randomId);
    if (config.stored === 'forget') this.#forget();
    this.#use(this.#store.load(), 'kept');
  }

  #forget(): void {
    try {
      this.#store.forget();
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      throw new BridgeError('ERR_CONFIG_OPTION', `Cannot forget the login in ${this.#store.path} (${code}).`, {
        cause,
      });
    }
  }

  get renewal(): CredentialRenewal {
    return this;
  }

  authorization(): string | undefined {
    return this.#credential.kind === 'token' ? this.#credential.authorization : undefined;
  }

  get isUnderWay(): boolean {
    return this.#renewal.kind === 'renewing';
  }

  accepted(authorization: string): void {
    const credential = this.#credential;
    if (credential.kind === 'none' || credential.standing === 'accepted') return;
    if (authorization === credential.authorization) this.#credential = { ...credential, standing: 'accepted' };
  }

  beforeRequest(): Promise<void> | undefined {
    const credential = this.#credential;
    if (credential.kind === 'token' && !isDue(credential.login.tokens)) return undefined;
    if (this.#renewal.kind === 'renewing') return this.#renewal.outcome.then(() => {});
    if (credential.kind === 'none' || credential.refreshAhead === 'tried') return undefined;
    if (credential.login.tokens.refreshToken === undefined) return undefined;
    this.#credential = { ...credential, refreshAhead: 'tried' };
    return this.#begin(async () => ((await this.#refresh()) ? RENEWED : REFUSED)).then(() => {});
  }

  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined {
    const { status, challenge, authorization } = refusal;
    if (this.#closed.signal.aborted) return undefined;
    if (status === 403 && challenge.error !== 'insufficient_scope') return undefined;
    if (authorization !== this.authorization()) return Promise.resolve(RENEWED);
    if (this.#renewal.kind === 'renewing') return this.#renewal.outcome;
    this.#peerAddress = refusal.peerAddress;
    if (this.#renewal.kind === 'failed') {
      if (this.#options.deps.clock.now() < this.#renewal.untilMs) return Promise.resolve(this.#renewal.outcome);
      this.#renewal = IDLE;
    }
    if (status === 403 && !this.#mayStepUp(challenge.scopes)) return undefined;
    return this.#begin(() => this.#renew(refusal));
  }

  /** Whoever has asked for just that and did not get it will not get it by asking once more. */
  #mayStepUp(wanted: readonly string[]): boolean {
    const known = new Set(this.#credential.login?.scopes);
    if (this.#hasLoggedIn && wanted.length > 0 && wanted.every((name) => known.has(name))) return false;
    const key = [...wanted].sort().join(' ');
    if (this.#steppedUp.has(key) || this.#steppedUp.size >= MAX_STEP_UPS) return false;
    this.#steppedUp.add(key);
    return true;
  }

  #begin(work: () => Promise<RenewalOutcome>): Promise<RenewalOutcome> {
    const { clock, log } = this.#options.deps;
    // A refresh ahead of time does not shorten the pause after a failed login.
    let after = this.#renewal;
    const outcome = work()
      .catch((thrown: unknown): RenewalOutcome => {
        const failed: RenewalOutcome = { kind: 'failed', error: this.#explain(thrown) };
        after = { kind: 'failed', outcome: failed, untilMs: clock.now() + FAILURE_PAUSE_MS };
        if (!this.#closed.signal.aborted) log.error({ code: failed.error.code }, failed.error.message);
        return failed;
      })
      .finally(() => {
        this.#renewal = after;
      });
    this.#renewal = { kind: 'renewing', outcome };
    return outcome;
  }

  /** The authorization server that cannot be reached is not the server that was called. */
  #explain(thrown: unknown): BridgeError {
    if (this.#closed.signal.aborted) return SHUTTING_DOWN;
    const error = toBridgeError(thrown);
    if (error.code === 'ERR_UPSTREAM_AUTH' || error.code === 'ERR_INTERNAL') return error;
    return loginError(`The login for ${showUrl(this.#options.server)} came to nothing: ${error.message}`, '');
  }

  async #renew({ status, challenge }: CredentialRefusal): Promise<RenewalOutcome> {
    const elsewhere = this.#lookElsewhere();
    if (elsewhere !== undefined) return this.#use(elsewhere, 'kept');
    if (status === 401) {
      const credential = this.#credential;
      if (credential.kind === 'token' && credential.standing === 'given') throw this.#notAccepted(credential.login);
      const isFresh = credential.kind === 'token' && credential.standing === 'refreshed';
      if (!isFresh && (await this.#refresh())) return RENEWED;
    }
    this.#closed.signal.throwIfAborted();
    const flow = await this.#createFlow();
    const previous = this.#isStored ? this.#store.load() : this.#credential.login;
    const lookElsewhere = () => this.#lookElsewhere();
    const registrationFailed = () => this.#forget();
    const login = await flow.login({ status, challenge, previous, lookElsewhere, registrationFailed });
    if (login === undefined) {
      const { server, deps } = this.#options;
      // Whoever gets the refusal says what that means; see ResponseHead.
      deps.log.debug({ status }, `no login is offered by the server at ${showUrl(server)}`);
      return REFUSED;
    }
    this.#hasLoggedIn = true;
    this.#save(login);
    this.#options.deps.log.info({ issuer: login.issuer }, 'logged in');
    return this.#use(login, 'given');
  }

  /** True: there is another token now. */
  async #refresh(): Promise<boolean> {
    const { login } = this.#credential;
    const refreshToken = login?.tokens?.refreshToken;
    const elsewhere = this.#lookElsewhere();
    if (elsewhere !== undefined) return this.#use(elsewhere, 'kept') === RENEWED;
    if (login === undefined || refreshToken === undefined) return false;
    const flow = await this.#createFlow();
    const refreshed = await flow.refresh(login, refreshToken);
    if (refreshed !== undefined) {
      this.#save(refreshed);
      this.#use(refreshed, 'refreshed');
      return true;
    }
    // [RFC 9700 4.14.2] A refresh token is good once: another process may have been faster.
    const faster = this.#lookElsewhere() ?? (await this.#lookLater());
    if (faster !== undefined) this.#use(faster, 'kept');
    return faster !== undefined;
  }

  /** A login that another process has made or refreshed since. */
  #lookElsewhere(): StoredLogin | undefined {
    const stored = this.#store.load();
    const token = stored?.tokens?.accessToken;
    return token === undefined || token === this.#credential.login?.tokens?.accessToken ? undefined : stored;
  }

  /** It may have its token, and not have kept it yet. */
  async #lookLater(): Promise<StoredLogin | undefined> {
    await new Promise<void>((resolve) => void this.#options.deps.clock.after(RACE_MS, resolve));
    return this.#lookElsewhere();
  }

  #use(login: StoredLogin | undefined, standing: Standing): RenewalOutcome {
    if (!hasTokens(login)) {
      this.#credential = { kind: 'none', login };
      return RENEWED;
    }
    const { accessToken } = login.tokens;
    const before = this.#credential;
    const isSameToken = before.kind === 'token' && before.login.tokens.accessToken === accessToken;
    const refreshAhead = isSameToken ? before.refreshAhead : 'untried';
    this.#credential = { kind: 'token', login, authorization: `Bearer ${accessToken}`, standing, refreshAhead };
    return RENEWED;
  }

  #save(login: StoredLogin): void {
    try {
      this.#store.save(login);
      this.#isStored = true;
    } catch (thrown) {
      this.#isStored = false;
      const { code } = thrown as NodeJS.ErrnoException;
      const { path } = this.#store;
      const where = path === undefined ? ', as this user has no home folder (--state-dir names one)' : ` in ${path}`;
      this.#options.deps.log.warn({ code }, `the login cannot be kept${where}; the next run has to log in`);
    }
  }

  #notAccepted({ issuer }: StoredLogin) {
    const problem = `The server at ${showUrl(this.#options.server)} does not accept the token of ${issuer}`;
    return loginError(problem, 'It was given just now, so another login would not help; tell the operators.');
  }

  async #createFlow(): Promise<LoginFlow> {
    // Loaded when it is needed: most runs find their token in the store.
    const [{ LoginFlow }, { AddressGuard }, { createLoginFetch }] = await Promise.all([
      import('./login-flow.ts'),
      import('./address-guard.ts'),
      import('./login-fetch.ts'),
    ]);
    const { server, config, createClient, openBrowser, deps } = this.#options;
    this.#client ??= createClient();
    const guard = new AddressGuard(server, this.#peerAddress);
    const fetch = createLoginFetch(this.#client, guard);
    return new LoginFlow({ server, config, guard, fetch, openBrowser, deps, signal: this.#closed.signal });
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(SHUTTING_DOWN);
    this.#client?.close();
  }
}

function hasTokens(login: StoredLogin | undefined): login is LoginWithTokens {
  return login?.tokens !== undefined;
}

/** By the calendar: other runs have written the time. */
function isDue({ renewAtMs }: Tokens): boolean {
  return renewAtMs !== undefined && Date.now() >= renewAtMs;
}
