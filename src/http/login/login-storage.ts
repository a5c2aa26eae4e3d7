import type { LoginConfig } from '../../config/remote.ts';
import { BridgeError } from '../../errors.ts';
import { type LockDeps, LoginLock } from './login-lock.ts';
import { identityOf, LoginStore, parseStoredLogin, type StoredLogin } from './login-store.ts';

/** Where a login outlives the process, or is seen by others that use it. */
export interface LoginStorage {
  /** In words for a log; undefined: nothing is kept. */
  readonly place: string | undefined;
  /** As last seen; undefined: there is none that could be used. */
  load(): StoredLogin | undefined;
  /** Has `load` return what others have stored since. */
  look(): Promise<void>;
  /** Rejects with what the system says. */
  save(login: StoredLogin): Promise<void>;
  /** Rejects with what the system says. */
  forget(): Promise<void>;
  /**
   * Runs `work` when no other process that is known of does the same, and has looked before. Rejects with the reason of
   * the signal when that is aborted before the turn has come.
   */
  exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

/** A text that other processes share, and that one at a time may change. */
export interface SharedText {
  readonly value: string | undefined;
  look(): Promise<void>;
  set(value: string | undefined): Promise<void>;
  exclusively<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Opens the text of this name. */
export type OpenSharedText = (name: string) => SharedText;

/** In a file of this user, with a lock beside it, as other processes of the user may share the login. */
export class LoginFile implements LoginStorage {
  readonly #store: LoginStore;
  readonly #lock: LoginLock | undefined;

  /** Throws ERR_CONFIG_OPTION when a login that is to be forgotten cannot be. */
  constructor(server: URL, config: LoginConfig, deps: LockDeps) {
    this.#store = new LoginStore(server, config, deps.randomId);
    const { path } = this.#store;
    this.#lock = path === undefined ? undefined : new LoginLock(`${path}.lock`, server, deps);
    if (config.stored === 'forget') this.#forgetFormer();
  }

  #forgetFormer(): void {
    try {
      this.#store.forget();
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      const message = `Cannot forget the login in ${this.#store.path} (${code}).`;
      throw new BridgeError('ERR_CONFIG_OPTION', message, { cause });
    }
  }

  get place(): string | undefined {
    return this.#store.path;
  }

  load(): StoredLogin | undefined {
    return this.#store.load();
  }

  async look(): Promise<void> {}

  async save(login: StoredLogin): Promise<void> {
    this.#store.save(login);
  }

  async forget(): Promise<void> {
    this.#store.forget();
  }

  exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    return this.#lock === undefined ? work() : this.#lock.exclusively(work, signal);
  }
}

/** Where several replicas share one login: what one of them has got the others use. */
export class SharedLogin implements LoginStorage {
  readonly place = 'the store that the replicas share';
  readonly #text: SharedText;
  /** What was there when a replica started that is to log in anew: the others may go on with it, this one does not. */
  #ignored: string | undefined;

  /** Resolves when it is known what there is. Rejects with ERR_STORE_UNAVAILABLE. */
  static async open(server: URL, config: LoginConfig, openText: OpenSharedText): Promise<SharedLogin> {
    const login = new SharedLogin(openText(`login ${JSON.stringify(identityOf(server, config))}`));
    await login.look();
    if (config.stored === 'forget') login.#ignored = login.#text.value;
    return login;
  }

  private constructor(text: SharedText) {
    this.#text = text;
  }

  load(): StoredLogin | undefined {
    const { value } = this.#text;
    return value === undefined || value === this.#ignored ? undefined : parseStoredLogin(value);
  }

  look(): Promise<void> {
    return this.#text.look();
  }

  save(login: StoredLogin): Promise<void> {
    return this.#text.set(JSON.stringify(login));
  }

  forget(): Promise<void> {
    return this.#text.set(undefined);
  }

  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#text.exclusively(work);
  }
}
