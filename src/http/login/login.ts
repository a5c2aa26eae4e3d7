import type { LoginConfig } from '../../config.ts';
import type { Deps } from '../../deps.ts';
import { BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { HttpClient } from '../client/client.ts';
import type { CredentialRefusal, CredentialRenewal, Credentials, RenewalOutcome } from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import { loginError } from './login-error.ts';
import type { LoginFlow } from './login-flow.ts';
import { LoginStore, type StoredLogin } from './login-store.ts';
import type { OpenBrowser } from './open-browser.ts';
import { splitScopes } from './scopes.ts';

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
  /** Undefined: users find the address in the log. */
  readonly openBrowser: OpenBrowser | undefined;
  readonly deps: Deps;
}

/**
 * What is known of the token in use:
 * - `kept`: it is from an earlier run, or of another process.
 * - `given`: a user, or a secret, has just got it, and the server has not taken it yet.
 * - `refreshed`: the same without a user.
 * - `accepted`: the server has taken it.
 */
type Standing = 'kept' | 'given' | 'refreshed' | 'accepted';

const RENEWED: RenewalOutcome = { kind: 'renewed' };
const REFUSED: RenewalOutcome = { kind: 'refused' };

/** The tokens for one server, got when it asks for them. One login at a time, whoever waits for it. */
export class Login implements Credentials, CredentialRenewal {
  readonly #options: LoginOptions;
  readonly #store: LoginStore;
  readonly #closed = new AbortController();
  #login: StoredLogin | undefined;
  #authorization: string | undefined = undefined;
  #standing: Standing = 'kept';
  #pending: Promise<RenewalOutcome> | undefined;
  #failure: { readonly outcome: RenewalOutcome; readonly untilMs: number } | undefined;
  /** The token that could not be refreshed ahead of time: it is used as long as the server takes it. */
  #unrefreshable: string | undefined;
  /** A login happened in this process. */
  #hasLoggedIn = false;
  /** Scopes that users were sent to the browser for. */
  readonly #steppedUp = new Set<string>();
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
    return this.#authorization;
  }

  get isUnderWay(): boolean {
    return this.#pending !== undefined;
  }

  accepted(authorization: string): void {
    if (this.#standing !== 'accepted' && authorization === this.#authorization) this.#standing = 'accepted';
  }

  beforeRequest(): Promise<void> | undefined {
    const tokens = this.#login?.tokens;
    const isDue = tokens?.renewAtMs !== undefined && Date.now() >= tokens.renewAtMs;
    if (!isDue && (tokens !== undefined || this.#pending === undefined)) return undefined;
    if (this.#pending !== undefined) return this.#pending.then(() => {});
    if (tokens?.refreshToken === undefined || tokens.accessToken === this.#unrefreshable) return undefined;
    this.#unrefreshable = tokens.accessToken;
    return this.#begin(async () => ((await this.#refresh()) ? RENEWED : REFUSED)).then(() => {});
  }

  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined {
    const { status, challenge, authorization } = refusal;
    if (this.#closed.signal.aborted) return undefined;
    if (status === 403 && challenge.error !== 'insufficient_scope') return undefined;
    if (authorization !== this.#authorization) return Promise.resolve(RENEWED);
    if (this.#pending !== undefined) return this.#pending;
    this.#peerAddress = refusal.peerAddress;
    if (this.#failure !== undefined) {
      if (this.#options.deps.clock.now() < this.#failure.untilMs) return Promise.resolve(this.#failure.outcome);
      this.#failure = undefined;
    }
    if (status === 403 && !this.#mayStepUp(challenge.scope)) return undefined;
    return this.#begin(() => this.#renew(refusal));
  }

  /** Whoever has asked for just that and did not get it will not get it by asking once more. */
  #mayStepUp(scope: string | undefined): boolean {
    const wanted = splitScopes(scope);
    const known = new Set(this.#login?.scopes);
    if (this.#hasLoggedIn && wanted.length > 0 && wanted.every((name) => known.has(name))) return false;
    const key = [...wanted].sort().join(' ');
    if (this.#steppedUp.has(key) || this.#steppedUp.size >= MAX_STEP_UPS) return false;
    this.#steppedUp.add(key);
    return true;
  }

  #begin(work: () => Promise<RenewalOutcome>): Promise<RenewalOutcome> {
    const { clock, log } = this.#options.deps;
    this.#pending = work()
      .catch((thrown: unknown): RenewalOutcome => {
        const outcome: RenewalOutcome = { kind: 'failed', error: this.#explain(thrown) };
        this.#failure = { outcome, untilMs: clock.now() + FAILURE_PAUSE_MS };
        if (!this.#closed.signal.aborted) log.error({ code: outcome.error.code }, outcome.error.message);
        return outcome;
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return this.#pending;
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
      if (this.#standing === 'given' && this.#authorization !== undefined) throw this.#notAccepted();
      if (this.#standing !== 'refreshed' && (await this.#refresh())) return RENEWED;
    }
    this.#closed.signal.throwIfAborted();
    const flow = await this.#createFlow();
    const previous = this.#isStored ? this.#store.load() : this.#login;
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
    const login = this.#login;
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
    return token === undefined || token === this.#login?.tokens?.accessToken ? undefined : stored;
  }

  /** It may have its token, and not have kept it yet. */
  async #lookLater(): Promise<StoredLogin | undefined> {
    await new Promise<void>((resolve) => void this.#options.deps.clock.after(RACE_MS, resolve));
    return this.#lookElsewhere();
  }

  #use(login: StoredLogin | undefined, standing: Standing): RenewalOutcome {
    this.#login = login;
    this.#authorization = login?.tokens === undefined ? undefined : `Bearer ${login.tokens.accessToken}`;
    this.#standing = standing;
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

  #notAccepted() {
    const problem = `The server at ${showUrl(this.#options.server)} does not accept the token of ${this.#login?.issuer}`;
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
