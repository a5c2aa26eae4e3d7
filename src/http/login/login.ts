import type { IncomingHttpHeaders } from 'node:http';
import type { LoginConfig } from '../../config/remote.ts';
import type { Deps } from '../../deps.ts';
import { type BridgeError, SHUTTING_DOWN, toBridgeError } from '../../errors.ts';
import type { HttpClient } from '../client/client.ts';
import type {
  AskUser,
  CredentialHeaders,
  CredentialRefusal,
  CredentialRenewal,
  Credentials,
  RenewalOutcome,
  UserAnswer,
  UserPrompt,
} from '../client/credentials.ts';
import { showUrl } from '../shown-url.ts';
import type { AskToPaste, OpenBrowser } from './authorize-in-browser.ts';
import type { DevicePrompt } from './device-code.ts';
import { loginError } from './login-error.ts';
import type { LoginFlow } from './login-flow.ts';
import type { LoginStorage } from './login-storage.ts';
import type { StoredLogin, Tokens } from './login-store.ts';
import { LOGIN_TIMEOUT_MS, PATIENCE_MS, patiently, pauseAfter } from './patience.ts';
import { TokenBinding } from './token-binding.ts';

/**
 * After a failure, calls fail with the same error for this long, so that a client which retries does not open page
 * after page.
 */
export const FAILURE_PAUSE_MS = 30_000;
/** Without this limit, a server that names other scopes each time would send the user to the browser forever. */
const MAX_STEP_UPS = 16;

export interface LoginOptions {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly storage: LoginStorage;
  /** Creates a client for the requests of a login, without the headers and credentials of the server. */
  readonly createClient: () => HttpClient;
  readonly openBrowser: OpenBrowser;
  /** Undefined if there is no terminal. */
  readonly askToPaste: AskToPaste | undefined;
  /**
   * - `user`: the user sees the log and waits for the login.
   * - `client`: the user's MCP client waits, and can show the code to enter; see `#untilTold`.
   * - `callers`: several people wait. They do not get the code, because they could log in with it as somebody else.
   */
  readonly waits: 'user' | 'client' | 'callers';
  /** Called when an authorization server has registered the bridge as a new client. */
  readonly registered: () => void;
  /** Called with the user's task, and with undefined when the task is done or abandoned. */
  readonly waiting: (task: UserTask | undefined) => void;
  readonly deps: Deps;
}

/** A task of the user that a login waits for. */
export interface UserTask {
  /** The end of a sentence that begins with "waiting for". */
  readonly what: string;
  readonly limitMs: number;
}

/**
 * The status of the token in use:
 * - `stored`: it comes from an earlier run or another process.
 * - `granted`: a user or a secret has just obtained it, and the server has not accepted it yet.
 * - `refreshed`: a refresh token has just obtained it, and the server has not accepted it yet.
 * - `accepted`: the server has accepted it.
 */
type TokenStatus = 'stored' | 'granted' | 'refreshed' | 'accepted';

type LoginWithTokens = StoredLogin & { readonly tokens: Tokens };

/**
 * The credential for the server. Only `#use` and `accepted` change it, except for `refreshAhead`.
 * - `none`: there is no token, but an earlier login may have left a registration.
 * - `token`: there is a token. `shown` has its headers except for the proof, which `binding` creates if the token is
 *   bound to a key. `refreshAhead` is `tried` once a refresh before the expiry has begun; if that fails, the token is
 *   used as long as the server accepts it.
 */
type Credential =
  | { readonly kind: 'none'; readonly login: StoredLogin | undefined; readonly binding: undefined }
  | {
      readonly kind: 'token';
      readonly login: LoginWithTokens;
      readonly shown: CredentialHeaders;
      readonly binding: TokenBinding | undefined;
      readonly status: TokenStatus;
      readonly refreshAhead: 'untried' | 'tried';
    };

/**
 * - `idle`: no renewal is in progress.
 * - `renewing`: a login or a refresh is in progress, and all calls that need a token wait for its outcome. `prompted`
 *   resolves when the user has to enter a code in a browser; `prompt` resolves it.
 * - `failed`: the latest login failed. Until `untilMs`, further attempts get the same outcome.
 */
type Renewal =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'renewing';
      readonly outcome: Promise<RenewalOutcome>;
      readonly prompted: Promise<CodePrompt>;
      readonly prompt: (prompt: CodePrompt) => void;
    }
  | { readonly kind: 'failed'; readonly outcome: RenewalOutcome; readonly untilMs: number };

/** The prompt for a code, for the calls that wait for the login. */
interface CodePrompt {
  /** The outcome for calls that cannot wait for the user. */
  readonly outcome: Extract<RenewalOutcome, { kind: 'failed' }>;
  /** The prompt that a client can show its user; undefined if no client may show the code. */
  readonly shown: UserPrompt | undefined;
  /** The user's answer; undefined until a call has shown the prompt. */
  answer: Promise<UserAnswer> | undefined;
}

type Renewing = Extract<Renewal, { kind: 'renewing' }>;

/**
 * Errors before any attempt to log in: replicas share the login, and another replica is logging in or cannot be ruled
 * out.
 */
const UNTRIED: ReadonlySet<string> = new Set(['ERR_STORE_UNAVAILABLE', 'ERR_CLUSTER_TURN']);
/** Errors whose own messages make clear that a login failed. */
const UNEXPLAINED: ReadonlySet<string> = new Set(['ERR_UPSTREAM_AUTH', 'ERR_INTERNAL', ...UNTRIED]);
/** [RFC 9449 9] */
const NONCE_WANTED = 'use_dpop_nonce';
const IDLE: Renewal = { kind: 'idle' };
const RENEWED: RenewalOutcome = { kind: 'renewed' };
const REFUSED: RenewalOutcome = { kind: 'refused' };

/**
 * Obtains tokens for one server when the server asks for them. Only one login takes place at a time, and all calls wait
 * for it.
 */
export class Login implements Credentials, CredentialRenewal {
  readonly #options: LoginOptions;
  readonly #storage: LoginStorage;
  readonly #closed = new AbortController();
  #credential: Credential = { kind: 'none', login: undefined, binding: undefined };
  #renewal: Renewal = IDLE;
  #lastRenewalEndedMs: number | undefined;
  /** True once a login has succeeded in this process. */
  #hasLoggedIn = false;
  /** The sets of scopes for which users were sent to the browser. */
  readonly #steppedUp = new Set<string>();
  /** True if the storage has the latest login; false once it could not be written. */
  #isStored = true;
  /** The id of a registration that the authorization server no longer knows. */
  #forgottenClient: string | undefined;
  /** The address from which the latest refusal came. */
  #peerAddress: string | undefined;
  #client: HttpClient | undefined;

  constructor(options: LoginOptions) {
    this.#options = options;
    this.#storage = options.storage;
    this.#use(this.#storage.load(), 'stored');
  }

  get renewal(): CredentialRenewal {
    return this;
  }

  show(method: string, url: URL): CredentialHeaders | undefined {
    if (this.#credential.kind === 'none') return undefined;
    const { shown, binding, login } = this.#credential;
    const dpop = binding?.prove(method, url, login.tokens.accessToken);
    return dpop === undefined ? shown : { ...shown, dpop };
  }

  get #authorization(): string | undefined {
    return this.#credential.kind === 'token' ? this.#credential.shown.authorization : undefined;
  }

  get lastUnderWayMs(): number | undefined {
    return this.#renewal.kind === 'renewing' ? this.#options.deps.clock.now() : this.#lastRenewalEndedMs;
  }

  accepted(authorization: string, url: URL, headers: IncomingHttpHeaders): void {
    const credential = this.#credential;
    if (credential.kind === 'none') return;
    credential.binding?.hear(url, headers);
    if (credential.status === 'accepted' || authorization !== credential.shown.authorization) return;
    this.#credential = { ...credential, status: 'accepted' };
  }

  takesNonce({ url, headers, challenge }: CredentialRefusal): boolean {
    const { binding } = this.#credential;
    return binding?.hear(url, headers) === true && challenge.dpop?.error === NONCE_WANTED;
  }

  beforeRequest(): Promise<void> | undefined {
    const credential = this.#credential;
    if (credential.kind === 'token' && !this.#isDue(credential.login.tokens)) return undefined;
    if (this.#renewal.kind === 'renewing') {
      // Once the user is prompted, the request is sent without a token; the server refuses it, and the call waits then.
      return Promise.race([this.#renewal.outcome, this.#renewal.prompted]).then(() => {});
    }
    if (credential.kind === 'none' || credential.refreshAhead === 'tried') return undefined;
    if (credential.login.tokens.refreshToken === undefined) return undefined;
    this.#credential = { ...credential, refreshAhead: 'tried' };
    return this.#begin(async () => ((await this.#refresh()) ? RENEWED : REFUSED)).outcome.then(() => {});
  }

  /** True if the token should be renewed. The time is calendar time, because another process may have stored it. */
  #isDue({ renewAtMs }: Tokens): boolean {
    return renewAtMs !== undefined && this.#options.deps.wallClock() >= renewAtMs;
  }

  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined {
    const { status, challenge, authorization } = refusal;
    if (this.#closed.signal.aborted) return undefined;
    if (status === 403 && challenge.error !== 'insufficient_scope') return undefined;
    if (authorization !== this.#authorization) return Promise.resolve(RENEWED);
    const refusedProof = this.#explainRefusedProof(refusal);
    if (refusedProof !== undefined) return Promise.resolve({ kind: 'failed', error: refusedProof });
    if (this.#renewal.kind === 'renewing') return this.#untilTold(this.#renewal, refusal.ask);
    this.#peerAddress = refusal.peerAddress;
    if (this.#renewal.kind === 'failed') {
      if (this.#options.deps.clock.now() < this.#renewal.untilMs) return Promise.resolve(this.#renewal.outcome);
      this.#renewal = IDLE;
    }
    if (status === 403 && !this.#mayStepUp(challenge.scopes)) return undefined;
    const { clock, log } = this.#options.deps;
    const work = () => patiently(() => this.#renew(refusal), { clock, log, signal: this.#closed.signal });
    return this.#untilTold(this.#begin(work), refusal.ask);
  }

  /**
   * Returns the error for a refused proof, which another token would not fix; undefined if the server does not object
   * to the proof. [RFC 9449 7.1, 9]
   */
  #explainRefusedProof({ challenge, headers }: CredentialRefusal): BridgeError | undefined {
    const { binding } = this.#credential;
    const code = challenge.dpop?.error;
    if (binding === undefined || (code !== NONCE_WANTED && code !== 'invalid_dpop_proof')) return undefined;
    const server = `The server at ${showUrl(this.#options.server)}`;
    const problem =
      code === NONCE_WANTED
        ? `${server} asks for a nonce (${code}) after it was sent one, or names none that can be sent`
        : `${server} does not accept the proof that the key of its token is here (${code})`;
    return loginError(problem, binding.advise(headers.date));
  }

  /**
   * Waits for the outcome of a renewal. When the user has to enter a code, the first call that can show it does so, and
   * all calls wait for the outcome, unless the user declines. If no call can show the code, a call waits for as long as
   * most clients do. Then it fails with an error that contains the code, and the login continues without it.
   */
  #untilTold({ outcome, prompted }: Renewing, ask: AskUser | undefined): Promise<RenewalOutcome> {
    return new Promise((resolve) => {
      let isOver = false;
      let cancel = (): void => {};
      void outcome.then((final) => {
        isOver = true;
        cancel();
        resolve(final);
      });
      void prompted.then(async (prompt) => {
        if (isOver) return;
        if (prompt.shown !== undefined) prompt.answer ??= ask?.(prompt.shown);
        const answer = (await prompt.answer) ?? 'unshown';
        if (answer === 'declined') resolve(prompt.outcome);
        if (answer !== 'unshown' || isOver) return;
        cancel = this.#options.deps.clock.after(PATIENCE_MS, () => resolve(prompt.outcome));
      });
    });
  }

  /**
   * Logs the user's task at a level that most logs show, because the log may be the only notice of what the calls wait
   * for.
   */
  #showCode({ instruction, code, lifeMs, page, completePage }: DevicePrompt): void {
    const { server, waits, waiting, deps } = this.#options;
    const complete = completePage === undefined ? '' : `, or open ${completePage.href}`;
    deps.log.warn(`the server asks for a login: ${instruction}${complete}`);
    waiting({ what: `you to enter the code ${code} at ${page.href}`, limitMs: lifeMs });
    if (waits === 'user' || this.#renewal.kind !== 'renewing') return;
    const { outcome, prompt } = this.#renewal;
    const asks = `The server at ${showUrl(server)} asks for a login`;
    if (waits === 'callers') {
      const error = loginError(`${asks}, for which a code has to be entered that is in the log`, 'Try again later.');
      return prompt({ outcome: { kind: 'failed', error }, shown: undefined, answer: undefined });
    }
    const error = loginError(`${asks}: ${instruction}`, 'Then try again.');
    const shown: UserPrompt = {
      id: `mcp-portage-login-${deps.randomId()}`,
      message: `To log in at ${showUrl(server)}, open this page and enter the code ${code}, or check that it shows this code.`,
      url: completePage ?? page,
      over: outcome.then(({ kind }) => (kind === 'renewed' ? 'logged-in' : 'ended')),
      error,
    };
    prompt({ outcome: { kind: 'failed', error }, shown, answer: undefined });
  }

  /**
   * True if the user should be asked for these scopes. Scopes that a login has requested without getting them would not
   * be granted the next time either.
   */
  #mayStepUp(wanted: readonly string[]): boolean {
    const known = new Set(this.#credential.login?.scopes);
    if (this.#hasLoggedIn && wanted.length > 0 && wanted.every((name) => known.has(name))) return false;
    const key = [...wanted].sort().join(' ');
    if (this.#steppedUp.has(key) || this.#steppedUp.size >= MAX_STEP_UPS) return false;
    this.#steppedUp.add(key);
    return true;
  }

  /**
   * @param work is run by one process at a time, because a refresh token can be used only once, and users have one
   * screen
   */
  #begin(work: () => Promise<RenewalOutcome>): Renewing {
    const { clock, log } = this.#options.deps;
    // A refresh ahead of time does not shorten the pause after a failed login.
    let after = this.#renewal;
    const outcome = this.#storage
      .exclusively(work, this.#closed.signal)
      .catch((thrown: unknown): RenewalOutcome => {
        const failed: RenewalOutcome = { kind: 'failed', error: this.#explain(thrown) };
        const pauseMs = UNTRIED.has(failed.error.code) ? 0 : pauseAfter(toBridgeError(thrown), FAILURE_PAUSE_MS);
        if (pauseMs > 0) after = { kind: 'failed', outcome: failed, untilMs: clock.now() + pauseMs };
        if (!this.#closed.signal.aborted) log.error({ code: failed.error.code }, failed.error.message);
        return failed;
      })
      .finally(() => {
        this.#renewal = after;
        this.#lastRenewalEndedMs = clock.now();
        this.#options.waiting(undefined);
      });
    let prompt = (_: CodePrompt): void => {};
    const prompted = new Promise<CodePrompt>((resolve) => {
      prompt = resolve;
    });
    const renewal: Renewing = { kind: 'renewing', outcome, prompted, prompt };
    this.#renewal = renewal;
    return renewal;
  }

  /**
   * Adds that the login has failed. Otherwise an unreachable authorization server could be taken for the server that
   * was called.
   */
  #explain(thrown: unknown): BridgeError {
    if (this.#closed.signal.aborted) return SHUTTING_DOWN;
    const error = toBridgeError(thrown);
    if (UNEXPLAINED.has(error.code)) return error;
    return loginError(
      `The login for ${showUrl(this.#options.server)} came to nothing: ${error.message}`,
      '',
      error.retryAfterMs,
    );
  }

  async #renew({ status, challenge, headers }: CredentialRefusal): Promise<RenewalOutcome> {
    const newer = this.#findNewerLogin();
    if (newer !== undefined) return this.#use(newer, 'stored');
    if (status === 401) {
      const credential = this.#credential;
      if (credential.kind === 'token' && credential.status === 'granted') throw this.#notAccepted(credential, headers);
      const isFresh = credential.kind === 'token' && credential.status === 'refreshed';
      if (!isFresh && (await this.#refresh())) return RENEWED;
    }
    this.#closed.signal.throwIfAborted();
    const flow = await this.#createFlow();
    const latest = this.#isStored ? this.#storage.load() : this.#credential.login;
    const previous = latest?.client.id === this.#forgottenClient ? undefined : latest;
    const findNewerLogin = () => {
      void this.#storage.look().catch(() => undefined);
      return this.#findNewerLogin();
    };
    const registrationFailed = (id: string) => this.#forgetClient(id);
    const keep = async (part: StoredLogin): Promise<void> => {
      await this.#save(part);
      this.#use(part, 'stored');
    };
    const login = await flow.login({ status, challenge, previous, findNewerLogin, registrationFailed, keep });
    if (login === undefined) {
      const { server, deps } = this.#options;
      // The request's own error says that no login is offered; see `offersNoLogin` in ResponseHead.
      deps.log.debug({ status }, `no login is offered by the server at ${showUrl(server)}`);
      return REFUSED;
    }
    this.#hasLoggedIn = true;
    this.#forgottenClient = undefined;
    await this.#save(login);
    this.#options.deps.log.info({ issuer: login.issuer }, 'logged in');
    return this.#use(login, 'granted');
  }

  /** Renews the token without the user. Resolves with true if there is another token now. */
  async #refresh(): Promise<boolean> {
    const { login } = this.#credential;
    const refreshToken = login?.tokens?.refreshToken;
    const newer = this.#findNewerLogin();
    if (newer !== undefined) return this.#use(newer, 'stored') === RENEWED;
    if (login === undefined || refreshToken === undefined) return false;
    const flow = await this.#createFlow();
    const refreshed = await flow.refresh(login, refreshToken, (id) => this.#forgetClient(id));
    if (refreshed !== undefined) {
      await this.#save(refreshed);
      this.#use(refreshed, 'refreshed');
      return true;
    }
    // [RFC 9700 4.14.2] A refresh token can be used only once, and a process that ignores the lock may have used it.
    const faster = this.#findNewerLogin();
    if (faster !== undefined) this.#use(faster, 'stored');
    return faster !== undefined;
  }

  /**
   * Deletes a registration that the authorization server no longer knows, so that the next login registers a new
   * client. Another process may have done so already. If the deletion fails, this process alone ignores the
   * registration.
   */
  #forgetClient(id: string): void {
    this.#forgottenClient = id;
    if (this.#storage.load()?.client.id === id) void this.#storage.forget().catch(() => undefined);
  }

  /** Returns a login that another process has made or refreshed meanwhile; undefined if there is none. */
  #findNewerLogin(): StoredLogin | undefined {
    const stored = this.#storage.load();
    const token = stored?.tokens?.accessToken;
    return token === undefined || token === this.#credential.login?.tokens?.accessToken ? undefined : stored;
  }

  #use(login: StoredLogin | undefined, status: TokenStatus): RenewalOutcome {
    if (!hasTokens(login)) {
      this.#credential = { kind: 'none', login, binding: undefined };
      return RENEWED;
    }
    const { accessToken } = login.tokens;
    const before = this.#credential;
    const isSameToken = before.kind === 'token' && before.login.tokens.accessToken === accessToken;
    const refreshAhead = isSameToken ? before.refreshAhead : 'untried';
    const binding = this.#bindingOf(login.tokens, before.binding);
    const shown = { authorization: `${binding === undefined ? 'Bearer' : 'DPoP'} ${accessToken}` };
    this.#credential = { kind: 'token', login, shown, binding, status, refreshAhead };
    return RENEWED;
  }

  /** Returns the binding for a token. An ID token is never bound to a key, even if the tokens issued with it are. */
  #bindingOf({ key }: Tokens, before: TokenBinding | undefined): TokenBinding | undefined {
    const { config, deps } = this.#options;
    if (key === undefined || config.token === 'id') return undefined;
    // The nonces that the server has sent remain valid.
    if (before?.key?.thumbprint === key.thumbprint) return before;
    return new TokenBinding({ key, algorithm: undefined, isRequired: true, deps });
  }

  async #save(login: StoredLogin): Promise<void> {
    try {
      await this.#storage.save(login);
      this.#isStored = true;
    } catch (thrown) {
      const wasStored = this.#isStored;
      this.#isStored = false;
      if (!wasStored) return;
      const { code, message } = thrown as NodeJS.ErrnoException;
      const { place } = this.#storage;
      const why = place === undefined ? 'this user has no home folder (--state-dir names one)' : `${place}: ${message}`;
      this.#options.deps.log.warn({ code }, `The login cannot be kept, so the next run has to log in: ${why}`);
    }
  }

  #notAccepted(
    { login: { issuer, tokens }, binding }: Extract<Credential, { kind: 'token' }>,
    headers: IncomingHttpHeaders,
  ) {
    const problem = `The server at ${showUrl(this.#options.server)} does not accept the token of ${issuer}`;
    const isIdTokenLeft = this.#options.config.token === 'access' && tokens.hasIdToken;
    const wayOut = isIdTokenLeft
      ? 'There was an ID token as well, which some servers want in its place: --oauth-token id.'
      : (binding?.advise(headers.date) ?? 'Tell the operators.');
    return loginError(problem, `It was given just now, so another login would not help. ${wayOut}`);
  }

  async #createFlow(): Promise<LoginFlow> {
    // Loaded on demand, because most runs find their token in the store and need none of these modules.
    const [{ LoginFlow }, { AddressGuard }, { createLoginFetch }] = await Promise.all([
      import('./login-flow.ts'),
      import('./address-guard.ts'),
      import('./login-fetch.ts'),
    ]);
    const { server, config, createClient, openBrowser, askToPaste, registered, waiting, deps } = this.#options;
    const client = this.#client ?? createClient();
    this.#client = client;
    const reachFrom = (named: URL, peerAddress?: string) => {
      const guard = new AddressGuard(named, peerAddress);
      return { guard, fetch: createLoginFetch(client, guard) };
    };
    const showCode = (prompt: DevicePrompt): void => this.#showCode(prompt);
    const begin = (start: URL): void => {
      waiting({ what: 'you to log in in the browser', limitMs: LOGIN_TIMEOUT_MS });
      openBrowser(start);
    };
    return new LoginFlow({
      ...{ server, config, openBrowser: begin, askToPaste, showCode, registered, deps },
      ...reachFrom(server, this.#peerAddress),
      reachFrom,
      signal: this.#closed.signal,
    });
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
