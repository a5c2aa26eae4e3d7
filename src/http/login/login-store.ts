import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LoginConfig } from '../../config.ts';
import { parseStoredLogin, type StoredLogin } from './stored-login.ts';

/** Nobody but the user: the files are as good as passwords. */
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const MAX_NAME_LENGTH = 60;

/**
 * One login between runs, in a file of its own. Written aside and renamed, so that whoever reads gets the old one or the
 * new one; of two writers the later one wins. Read and written at once rather than later: it is a few hundred bytes, once
 * in a while.
 */
export class LoginStore {
  /** Undefined: there is no folder for logins, so none is ever there. */
  readonly path: string | undefined;
  readonly #randomId: () => string;

  constructor(server: URL, config: LoginConfig, randomId: () => string) {
    const { stateDirectory } = config;
    this.path = stateDirectory && join(stateDirectory, 'logins', fileNameOf(server, config));
    this.#randomId = randomId;
  }

  /** Undefined: there is none that could be used. */
  load(): StoredLogin | undefined {
    if (this.path === undefined) return undefined;
    try {
      return parseStoredLogin(readFileSync(this.path, 'utf8'));
    } catch {
      return undefined;
    }
  }

  /** Throws what the system says. */
  save(login: StoredLogin): void {
    if (this.path === undefined) throw new Error('there is no folder for logins');
    const folder = dirname(this.path);
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
    // An older folder may have been made by somebody less careful.
    chmodSync(folder, FOLDER_MODE);
    const aside = `${this.path}.${this.#randomId()}`;
    try {
      writeFileSync(aside, `${JSON.stringify(login, undefined, 2)}\n`, { mode: FILE_MODE, flag: 'wx' });
      renameSync(aside, this.path);
    } catch (thrown) {
      rmSync(aside, { force: true });
      throw thrown;
    }
  }

  /** Throws what the system says. */
  forget(): void {
    if (this.path !== undefined) rmSync(this.path, { force: true });
  }
}

/** The host for people who look for it; the rest tells servers, and clients of one server, apart. */
function fileNameOf(server: URL, { grant, client, clientMetadataUrl, issuer }: LoginConfig): string {
  const identity = [server.href, grant, client?.id, clientMetadataUrl, issuer];
  const digest = createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 16);
  const host = server.host.replace(/[^a-z0-9.-]/gi, '_').slice(0, MAX_NAME_LENGTH);
  return `${host}-${digest}.json`;
}
