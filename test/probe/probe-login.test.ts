/** What a probe says and does while its user logs in. */
import test, { type ExecutionContext } from 'ava';
import type { LoginConfig } from '../../src/config/remote.ts';
import { NO_OPTIONS } from '../http/login/login-config.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { forwardTo, type LoginWorld, startLoginWorld } from '../support/login-world.ts';
import { startStreamable } from '../support/sdk-servers.ts';
import { waitFor } from '../support/wait-for.ts';
import { probe, working } from './run.ts';

/** No other timer of a probe takes as long. */
const INTERVAL_MS = 7000;

/** Counts the pauses between two requests for a token, so that each can be ended when it has begun. */
class PollClock extends FakeClock {
  pauses = 0;

  override after(delayMs: number, run: () => void): () => void {
    if (delayMs === INTERVAL_MS) this.pauses += 1;
    return super.after(delayMs, run);
  }
}

/** An official server that wants a login. */
async function protect(t: ExecutionContext): Promise<LoginWorld> {
  const server = await startStreamable();
  t.teardown(() => server.close());
  const world = await startLoginWorld(t);
  world.serve = forwardTo(server.url);
  world.metadata = { device_authorization_endpoint: `${world.issuer}/device` };
  world.answerDevice = () => ({
    status: 200,
    body: {
      device_code: 'device-1',
      user_code: 'WDJB-MJHT',
      verification_uri: `${world.issuer}/enter`,
      expires_in: 900,
      interval: INTERVAL_MS / 1000,
    },
  });
  return world;
}

function startProbe(world: LoginWorld, change: Partial<LoginConfig>, timeoutMs: number) {
  const clock = new PollClock();
  const said: string[] = [];
  const waiting = (what: string, limitMs?: number) =>
    void said.push(limitMs === undefined ? what : `${what} ${limitMs}`);
  const login: LoginConfig = { ...NO_OPTIONS, stateDirectory: undefined, ...change };
  const report = probe(world.url, { remote: { login }, clock, waiting, timeoutMs });
  const hears = (text: string) => waitFor(() => said.includes(text) || undefined, { message: () => said.join('\n') });
  return { clock, said, report, hears };
}

const ENTER = (world: LoginWorld, limitMs: number) =>
  `you to enter the code WDJB-MJHT at ${world.issuer}/enter ${limitMs}`;

test('a probe waits for a login with a code to its end, and says so instead of naming a request', async (t) => {
  const world = await protect(t);
  const pending = { status: 400, body: { error: 'authorization_pending' } };
  // More than a call of a client waits, than a login in a browser takes and than a request of a probe may.
  const polls = 40;
  world.refuseTokens = Array.from({ length: polls }, () => pending);
  const { clock, said, report, hears } = startProbe(world, { grant: 'device-code' }, 16 * 60_000);
  await hears(ENTER(world, 900_000));
  for (let poll = 1; poll <= polls; poll += 1) {
    await waitFor(() => clock.pauses === poll || undefined, { message: `pause ${poll}` });
    clock.advance(INTERVAL_MS);
  }
  await waitFor(() => clock.pauses === polls + 1 || undefined, { message: 'the last pause' });
  t.is(said.at(-1), ENTER(world, 900_000));
  clock.advance(INTERVAL_MS);
  const found = await report;
  t.deepEqual(working(found), ['streamable-http legacy'], found.problems.join('\n'));
  t.is(said[said.indexOf(ENTER(world, 900_000)) + 1], 'the answer to POST server/discover');
});

test('a probe says that it waits for a login in the browser, and for how long', async (t) => {
  const world = await protect(t);
  const { clock, report, hears } = startProbe(world, { browser: undefined }, 5 * 60_000);
  await hears('you to log in in the browser 240000');
  clock.advance(240_000);
  const { problems } = await report;
  t.regex(problems.join('\n'), /Nobody has logged in within 4 minutes/);
});
