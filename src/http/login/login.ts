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
/** Without this limit, a server that names other scopes each time would send the user to the browser for ever. */
const MAX_STEP_UPS = 16;

export interface LoginOptions {
  readonly server: URL;
  readonly config: LoginConfig;
  readonly storage: LoginStorage;
  /** Makes a client for the requests of a login, without the headers and credentials of the server. */
  readonly createClient: () => HttpClient;
  readonly openBrowser: OpenBrowser;
  /** Undefined: there is no terminal. */
  readonly askToPaste: AskToPaste | undefined;
  /**
   * - `user`: somebody sees the log and waits for the login.
   * - `client`: the client of this user, which is shown a code to enter; see `#untilTold`.
   * - `callers`: several people. They do not learn the code, with which they could log in as somebody else.
   */
  readonly waits: 'user' | 'client' | 'callers';
  /** Called when an authorization server has registered us as a client that it did not know. */
  readonly registered: () => void;
  /** Called with what the user is to do, and with undefined when that is done or given up. */
  readonly waiting: (task: UserTask | undefined) => void;
  readonly deps: Deps;
}

/** Something that a login waits for its user to do. */
export interface UserTask {
  /** The end of a sentence that begins with "waiting for". */
  readonly what: string;
  readonly limitMs: number;
}

/**
 * What is known of the token in use:
 * - `stored`: it is from an earlier run, or of another process.
 * - `granted`: a user, or a secret, has just got it, and the server has not taken it yet.
 * - `refreshed`: a refresh token has just got it, and the server has not taken it yet.
 * - `accepted`: the server has taken it.
 */
type TokenStatus = 'stored' | 'granted' | 'refreshed' | 'accepted';

type LoginWithTokens = StoredLogin & { readonly tokens: Tokens };

/**
 * What the server is shown. Changed in `#use` and `accepted` only, but for `refreshAhead`.
 * - `none`: there is no token; at most an earlier login has left a registration.
 * - `token`: there is one. `shown` has its headers but for the proof of its key, which `binding` makes where there is one.
 *   `refreshAhead` is `tried` once a refresh before the time of its expiry has begun: where that
 *   comes to nothing, the token is used as long as the server takes it.
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
 * - `idle`: nobody waits for a token.
 * - `renewing`: a login or a refresh is under way, and all who need a token wait for its outcome. `prompted` resolves when
 *   the user is to enter a code in a browser somewhere; `prompt` resolves it.
 * - `failed`: the latest login came to nothing; until `untilMs` whoever asks for another gets the same outcome.
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

/** What calls are told that wait for a code to be entered. */
interface CodePrompt {
  /** The outcome for calls that cannot wait for that. */
  readonly outcome: Extract<RenewalOutcome, { kind: 'failed' }>;
  /** What a client can show its user; undefined: nobody may see the code. */
  readonly shown: UserPrompt | undefined;
  /** The user's answer, once a call has shown it. */
  answer: Promise<UserAnswer> | undefined;
}

type Renewing = Extract<Renewal, { kind: 'renewing' }>;

/** Nobody was asked for anything: replicas share the login, and another is at it, or cannot be known not to be. */
const UNTRIED: ReadonlySet<string> = new Set(['ERR_STORE_UNAVAILABLE', 'ERR_CLUSTER_TURN']);
/** These say what they are about by themselves. */
const UNEXPLAINED: ReadonlySet<string> = new Set(['ERR_UPSTREAM_AUTH', 'ERR_INTERNAL', ...UNTRIED]);
/** [RFC 9449 9] */
const NONCE_WANTED = 'use_dpop_nonce';
const IDLE: Renewal = { kind: 'idle' };
const RENEWED: RenewalOutcome = { kind: 'renewed' };
const REFUSED: RenewalOutcome = { kind: 'refused' };

/**
 * The tokens for one server, which are got when it asks for them. One login takes place at a time, and all calls wait
 * for it.
 */
export class Login implements Credentials, CredentialRenewal {
  readonly #options: LoginOptions;
  readonly #storage: LoginStorage;
  readonly #closed = new AbortController();
  #credential: Credential = { kind: 'none', login: undefined, binding: undefined };
  #renewal: Renewal = IDLE;
  #lastRenewalEndedMs: number | undefined;
  /** Whether a login has succeeded in this process. */
  #hasLoggedIn = false;
  /** Scopes that users were sent to the browser for. */
  readonly #steppedUp = new Set<string>();
  /** The file has the latest login, unless it could not be written. */
  #isStored = true;
  /** The id of a registration that the authorization server has forgotten. */
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
      // Without a token the server refuses, and the call waits for the user then.
      return Promise.race([this.#renewal.outcome, this.#renewal.prompted]).then(() => {});
    }
    if (credential.kind === 'none' || credential.refreshAhead === 'tried') return undefined;
    if (credential.login.tokens.refreshToken === undefined) return undefined;
    this.#credential = { ...credential, refreshAhead: 'tried' };
    return this.#begin(async () => ((await this.#refresh()) ? RENEWED : REFUSED)).outcome.then(() => {});
  }

  /** Whether the token should be renewed, by the calendar, as another process may have stored the time. */
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

  /** Another token would not help. Undefined: the server says nothing against the proof. [RFC 9449 7.1, 9] */
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
   * Once the user is to enter a code, the first call that can show it does so, and all calls wait for what comes of it,
   * unless the user declines. Where none can, a call waits for as long as most clients do. Then it fails with an error that
   * shows the code, and the login goes on without it.
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

  /** Logs what the user is to do, at a level that most logs show, as nobody else may know what the calls wait for. */
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
   * Whether the user should be asked for these scopes. Scopes that were asked for without being granted are not granted
   * the next time either.
   */
  #mayStepUp(wanted: readonly string[]): boolean {
    const known = new Set(this.#credential.login?.scopes);
    if (this.#hasLoggedIn && wanted.length > 0 && wanted.every((name) => known.has(name))) return false;
    const key = [...wanted].sort().join(' ');
    if (this.#steppedUp.has(key) || this.#steppedUp.size >= MAX_STEP_UPS) return false;
    this.#steppedUp.add(key);
    return true;
  }

  /** @param work done by one process at a time, as a refresh token can be used once, and users have one screen */
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
   * Says that the login has failed: otherwise an authorization server that cannot be reached would pass for the server
   * that was called.
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
      // The error that says so is made from the refusal; see ResponseHead.
      deps.log.debug({ status }, `no login is offered by the server at ${showUrl(server)}`);
      return REFUSED;
    }
    this.#hasLoggedIn = true;
    this.#forgottenClient = undefined;
    await this.#save(login);
    this.#options.deps.log.info({ issuer: login.issuer }, 'logged in');
    return this.#use(login, 'granted');
  }

  /** Returns whether there is another token now. */
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
    // [RFC 9700 4.14.2] A refresh token can be used once. A process that heeds no lock may have used it.
    const faster = this.#findNewerLogin();
    if (faster !== undefined) this.#use(faster, 'stored');
    return faster !== undefined;
  }

  /**
   * The authorization server does not know the client any more, so that the next login registers another one. Another
   * process may have done so already. What cannot be deleted is passed over by this process alone.
   */
  #forgetClient(id: string): void {
    this.#forgottenClient = id;
    if (this.#storage.load()?.client.id === id) void this.#storage.forget().catch(() => undefined);
  }

  /** A login that another process has made or refreshed since. */
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

  /** An ID token is bound to no key, whatever the tokens are that came with it. */
  #bindingOf({ key }: Tokens, before: TokenBinding | undefined): TokenBinding | undefined {
    const { config, deps } = this.#options;
    if (key === undefined || config.token === 'id') return undefined;
    // The nonces that the server has named stay good.
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
      const { code } = thrown as NodeJS.ErrnoException;
      const { place } = this.#storage;
      const where = place === undefined ? ', as this user has no home folder (--state-dir names one)' : ` in ${place}`;
      this.#options.deps.log.warn({ code }, `the login cannot be kept${where}; the next run has to log in`);
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
    // Loaded when it is needed: most runs find their token in the store.
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
