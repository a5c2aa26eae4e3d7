import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { pino } from 'pino';
import { systemClock } from '../../../src/cli/system-deps.ts';
import type { LoginConfig } from '../../../src/config/remote.ts';
import type { Clock } from '../../../src/deps.ts';
import type { HttpClient } from '../../../src/http/client/client.ts';
import type { HttpRequest } from '../../../src/http/client/http-call.ts';
import { Login, type LoginOptions } from '../../../src/http/login/login.ts';
import { LoginFile, type LoginStorage } from '../../../src/http/login/login-storage.ts';
import { Browser } from '../../support/browser.js';
import { waitFor } from '../../support/wait-for.ts';
import { closeAfter, createClient, RecordedCall } from '../recorded-call.ts';
import { NO_OPTIONS } from './login-config.ts';

export interface LoginSettings extends Partial<LoginConfig> {
  readonly clock?: Clock;
  /** Default: the time of the system. */
  readonly wallClock?: () => number;
  /** Where the login is kept; default: in a file. */
  readonly storage?: LoginStorage;
  /** `absent`: the user finds the address in the log, and does nothing with it. */
  readonly user?: 'present' | 'absent';
  readonly waits?: LoginOptions['waits'];
  readonly askToPaste?: LoginOptions['askToPaste'];
  readonly waiting?: LoginOptions['waiting'];
}

/** A client of a server, as one process has it, whose user agrees to everything. */
export interface User {
  /** How often an authorization server has registered it. */
  readonly registrations: () => number;
  readonly login: Login;
  readonly http: HttpClient;
  readonly browser: Browser;
  /** What the browser was opened with. */
  readonly opened: readonly URL[];
  /** Everything that was logged, as text. */
  readonly log: () => string;
  /** Where a login begins, as the log says of the latest one, once it does. */
  startAddress(): Promise<string>;
  /** Posts to the server, once. */
  call(request?: Partial<HttpRequest>): Promise<RecordedCall>;
}

export function temporaryFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-portage-login-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const START = /if no browser opens, open (http:[^"\s]+)/;

/** Closed when the test ends. */
export function createUser(t: ExecutionContext, server: URL, settings: LoginSettings = {}): User {
  const {
    clock = systemClock,
    wallClock = Date.now,
    user = 'present',
    waits = 'client',
    askToPaste,
    waiting = () => {},
    storage,
    ...changes
  } = settings;
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const config: LoginConfig = {
    ...NO_OPTIONS,
    stateDirectory: changes.stateDirectory ?? temporaryFolder(t),
    ...changes,
  };
  const deps = { log, clock, wallClock, randomId: randomUUID };
  const browser = new Browser();
  const opened: URL[] = [];
  const visit = (page: URL): void => {
    opened.push(page);
    void browser.visit(page).catch(() => {});
  };
  const openBrowser = user === 'present' ? visit : () => {};
  let registrations = 0;
  const registered = (): void => {
    registrations += 1;
  };
  const login = new Login({
    ...{ server, config, openBrowser, askToPaste, registered, waiting, waits, deps },
    storage: storage ?? new LoginFile(server, config, deps),
    createClient: () => createClient({ clock }),
  });
  const http = createClient({ credentials: login, clock });
  closeAfter(t, http, login);
  const call = (request?: Partial<HttpRequest>) => new RecordedCall(http, server, request).finished();
  const findStart = () => lines.map((line) => START.exec(line)?.[1]).findLast((found) => found !== undefined);
  const startAddress = () => waitFor(findStart, { message: 'a login to begin' });
  return {
    registrations: () => registrations,
    login,
    http,
    browser,
    opened,
    log: () => lines.join(''),
    startAddress,
    call,
  };
}
