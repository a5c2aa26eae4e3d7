/** Logs in with a code that the user enters in a browser on any machine. [RFC 8628] */
import { type AuthorizationServer, deviceAuthorizationRequest } from 'oauth4webapi';
import type { Clock } from '../../deps.ts';
import { BridgeError } from '../../errors.ts';
import { sleep } from '../../io/sleep.ts';
import { printableLine } from '../../printable.ts';
import type { AddressGuard } from './address-guard.ts';
import { loginError, quoteOthers } from './login-error.ts';
import type { StoredLogin } from './login-store.ts';
import { mayPass } from './patience.ts';
import { beginningMembers } from './request-parameters.ts';
import {
  askEndpoint,
  authenticateAs,
  type Endpoint,
  requestDeviceTokens,
  scopeParameter,
  secondsOf,
  type TokenAnswer,
  type TokenContext,
  textOf,
} from './token-requests.ts';

/** [RFC 8628 3.2] The pause between two requests if the authorization server names no sensible one. */
const DEFAULT_INTERVAL_MS = 5000;
const MIN_INTERVAL_MS = 1000;
/** The longest pause, after which a completed login is noticed at the latest. */
const MAX_INTERVAL_MS = 60_000;
/** [RFC 8628 3.5] `slow_down` adds this to the pause. */
const SLOWER_BY_MS = 5000;
/** Codes usually last 10 or 15 minutes. Polling does not go on for longer, because other processes wait meanwhile. */
const MAX_CODE_LIFE_MS = 15 * 60_000;
/** Users type the code, and have to read the address on a screen. */
const MAX_CODE_LENGTH = 64;
const MAX_PAGE_LENGTH = 500;
/** The complete address is opened rather than typed, so it may be longer. */
const MAX_COMPLETE_PAGE_LENGTH = 2048;
/** The device code is sent with every request. */
const MAX_DEVICE_CODE_LENGTH = 16 * 1024;

export interface DevicePrompt {
  /** An instruction for the user, as a sentence without its end. */
  readonly instruction: string;
  readonly code: string;
  /** The time for which the code is valid from now on. */
  readonly lifeMs: number;
  readonly page: URL;
  /** The page with the code filled in. */
  readonly completePage: URL | undefined;
}

export interface DeviceLogin {
  readonly context: TokenContext;
  readonly scopes: readonly string[];
  readonly guard: Pick<AddressGuard, 'checkPage'>;
  readonly show: (prompt: DevicePrompt) => void;
  /** Returns a login that another process has completed meanwhile. */
  readonly findNewerLogin: () => StoredLogin | undefined;
  readonly clock: Clock;
  /** Aborted with the error to reject with. */
  readonly signal: AbortSignal;
}

export type DeviceOutcome = TokenAnswer | { readonly kind: 'other-process'; readonly login: StoredLogin };

/** Shows the user a code and waits until the user has entered it. Rejects with ERR_UPSTREAM_*. */
export async function authorizeDevice(login: DeviceLogin): Promise<DeviceOutcome> {
  const { context, clock, signal } = login;
  const answer = await requestCode(login);
  if (answer.kind === 'refused') return answer;
  const { authorizationServer: as } = context;
  const { deviceCode, intervalMs, prompt } = readCode(answer.members, as);
  const { lifeMs } = prompt;
  for (const page of [prompt.page, prompt.completePage]) if (page !== undefined) await login.guard.checkPage(page);
  signal.throwIfAborted();
  const endMs = clock.now() + lifeMs;
  login.show(prompt);
  for (let pauseMs = intervalMs; clock.now() + pauseMs < endMs; ) {
    await sleep(clock, pauseMs, signal);
    const newer = login.findNewerLogin();
    if (newer !== undefined) return { kind: 'other-process', login: newer };
    const polled = await poll(login, deviceCode);
    if ('kind' in polled) return polled;
    pauseMs = Math.min(Math.max(pauseMs + polled.slowerByMs, polled.retryAfterMs), MAX_INTERVAL_MS);
  }
  throw tooLate(lifeMs, as);
}

const DEVICE_ENDPOINT: Endpoint = { name: 'device authorization endpoint', gives: 'device_code' };

async function requestCode({ context, scopes }: DeviceLogin) {
  const { authorizationServer: as } = context;
  if (as.device_authorization_endpoint === undefined) {
    const problem = `${as.issuer} offers no login with a code: its metadata has no device_authorization_endpoint`;
    throw loginError(problem, 'Log in with a browser: leave out --oauth-grant device-code.');
  }
  const parameters = { ...beginningMembers(context.parameters), ...scopeParameter(scopes) };
  const answer = await askEndpoint(context, DEVICE_ENDPOINT, async (server, client, options) =>
    deviceAuthorizationRequest(server, client, await authenticateAs(context), parameters, options),
  );
  if (answer.kind === 'waiting') throw unusable(as, `says ${answer.reason} before there is a code`);
  return answer;
}

/** The authorization server must be asked again, after a longer pause if the answer says so. */
interface AskAgain {
  readonly slowerByMs: number;
  readonly retryAfterMs: number;
}

async function poll({ context, scopes }: DeviceLogin, deviceCode: string): Promise<TokenAnswer | AskAgain> {
  try {
    const answer = await requestDeviceTokens(context, deviceCode, scopes);
    if (answer.kind !== 'waiting') return answer;
    return { slowerByMs: answer.isTooFast ? SLOWER_BY_MS : 0, retryAfterMs: 0 };
  } catch (thrown) {
    // [RFC 8628 3.5] A server that cannot be reached is asked less often. The code remains valid meanwhile.
    if (!(thrown instanceof BridgeError) || !mayPass(thrown)) throw thrown;
    return { slowerByMs: SLOWER_BY_MS, retryAfterMs: thrown.retryAfterMs ?? 0 };
  }
}

interface ReadCode {
  readonly deviceCode: string;
  readonly intervalMs: number;
  readonly prompt: DevicePrompt;
}

/** Reads and checks the answer with the code. Users see the code and the address, so misleading ones are rejected. */
function readCode(members: Readonly<Record<string, unknown>>, as: AuthorizationServer): ReadCode {
  const { user_code: userCode, expires_in: life, interval } = members;
  const deviceCode = textOf(members.device_code) ?? '';
  const code = textOf(userCode)?.trim() ?? '';
  const page = readPage(members.verification_uri, MAX_PAGE_LENGTH);
  const completePage = readPage(members.verification_uri_complete, MAX_COMPLETE_PAGE_LENGTH);
  if (deviceCode.length > MAX_DEVICE_CODE_LENGTH) {
    throw unusable(as, `gives a device_code of ${deviceCode.length} characters`);
  }
  if (code === '' || code.length > MAX_CODE_LENGTH || printableLine(code) !== code) {
    throw unusable(as, `gives a user_code that is missing, longer than ${MAX_CODE_LENGTH} characters or not printable`);
  }
  if (page === undefined) {
    throw unusable(
      as,
      `gives a verification_uri that is missing, no URL, or longer than ${MAX_PAGE_LENGTH} characters`,
    );
  }
  const givenMs = 1000 * secondsOf(interval);
  const intervalMs = givenMs >= MIN_INTERVAL_MS && givenMs <= MAX_INTERVAL_MS ? givenMs : DEFAULT_INTERVAL_MS;
  const givenLifeMs = 1000 * secondsOf(life);
  const lifeMs = givenLifeMs > 0 ? Math.min(givenLifeMs, MAX_CODE_LIFE_MS) : MAX_CODE_LIFE_MS;
  const instruction = `within ${describeTime(lifeMs)}, open ${page.href} in any browser and enter the code ${code}`;
  return { deviceCode, intervalMs, prompt: { instruction, code, lifeMs, page, completePage } };
}

function readPage(value: unknown, maxLength: number): URL | undefined {
  const text = textOf(value);
  if (text === undefined || text.length > maxLength || !URL.canParse(text)) return undefined;
  const page = new URL(text);
  return page.href.length <= maxLength ? page : undefined;
}

function describeTime(ms: number): string {
  return ms < 60_000 ? `${Math.ceil(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min`;
}

function unusable({ issuer }: AuthorizationServer, fault: string): BridgeError {
  return loginError(`The device authorization endpoint of ${issuer} ${quoteOthers(fault)}`, 'Tell its operators.');
}

function tooLate(lifeMs: number, { issuer }: AuthorizationServer): BridgeError {
  const problem = `Nobody has entered the code for ${issuer} within ${describeTime(lifeMs)}`;
  return loginError(problem, 'The next call asks again; the new code is in the log.');
}
