import type { LoginConfig } from '../../config/remote.ts';
import { BridgeError } from '../../errors.ts';
import { type LockDeps, LoginLock } from './login-lock.ts';
import { identityOf, LoginStore, parseStoredLogin, type StoredLogin } from './login-store.ts';

/** Stores a login beyond the life of this process, and shares it with other processes that use it. */
export interface LoginStorage {
  /** A description for the log; undefined if nothing is stored. */
  readonly place: string | undefined;
  /** Returns the login as last read; undefined if there is none that can be used. */
  load(): StoredLogin | undefined;
  /** Reads again, so that `load` returns what other processes have stored since. */
  look(): Promise<void>;
  /** Rejects with the error of the file system or the store. */
  save(login: StoredLogin): Promise<void>;
  /** Rejects with the error of the file system or the store. */
  forget(): Promise<void>;
  /**
   * Runs `work` while no other known process does the same, after reading what they have stored. Rejects with the
   * reason of the signal if a wait for a file's lock is aborted; then `work` was not run.
   */
  exclusively<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result>;
}

/** A text that several processes share, and that one process at a time may change. */
export interface SharedText {
  readonly value: string | undefined;
  look(): Promise<void>;
  set(value: string | undefined): Promise<void>;
  exclusively<Result>(work: () => Promise<Result>): Promise<Result>;
}

/** Opens the shared text with this name. */
export type OpenSharedText = (name: string) => SharedText;

/**
 * Stores a login in a file of this user. A lock file beside it coordinates the processes of the user that share the
 * login.
 */
export class LoginFile implements LoginStorage {
  readonly #store: LoginStore;
  readonly #lock: LoginLock | undefined;

  /** Throws ERR_CONFIG_OPTION if a login that should be forgotten cannot be deleted. */
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

/** Stores a login that several replicas share: when one of them obtains tokens, the others use them. */
export class SharedLogin implements LoginStorage {
  readonly place = 'the store that the replicas share';
  readonly #text: SharedText;
  /**
   * The login that was stored when a replica started that has to log in anew. Other replicas may continue to use it,
   * but this one ignores it.
   */
  #ignored: string | undefined;

  /** Resolves once the stored login has been read. Rejects with ERR_STORE_UNAVAILABLE. */
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
