/** The pure part of a login with a code: when the authorization server is asked, and for how long. */
import test from 'ava';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { authorizeDevice, type DevicePrompt } from '../../../src/http/login/device-code.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** An authorization server that gives this code, and whose user never enters it. */
async function ask(
  members: Readonly<Record<string, unknown>>,
  guard: Pick<AddressGuard, 'checkPage'> = { checkPage: async () => {} },
) {
  const clock = new FakeClock();
  const askedAtS: number[] = [];
  const prompts: DevicePrompt[] = [];
  const code = { device_code: 'd', user_code: 'C', verification_uri: 'https://example.com/enter', ...members };
  const outcome = authorizeDevice({
    context: {
      authorizationServer: {
        issuer: 'https://example.com',
        token_endpoint: 'https://example.com/token',
        device_authorization_endpoint: 'https://example.com/device',
      },
      client: { origin: 'configured', id: 'client', method: 'none' },
      proof: undefined,
      parameters: { resource: 'https://server.example/mcp', extra: new Map(), binding: undefined },
      token: 'access',
      fetch: async (url) => {
        if (url.pathname === '/device') return Response.json(code);
        askedAtS.push(Math.floor(clock.now() / 1000));
        return Response.json({ error: 'authorization_pending' }, { status: 400 });
      },
      wallClock: Date.now,
    },
    scopes: [],
    guard,
    show: (prompt) => void prompts.push(prompt),
    findNewerLogin: () => undefined,
    clock,
    signal: new AbortController().signal,
  });
  const failed = outcome.then(
    () => '',
    (thrown: Error) => thrown.message,
  );
  // The code comes before any time has passed.
  await new Promise<void>((resolve) => setImmediate(resolve));
  await clock.advanceInSteps(20 * 60_000, 500);
  return { message: await failed, askedAtS, prompts, clock };
}

for (const interval of [undefined, null, 0, -1, 0.001, 1e9, 'soon', {}]) {
  test(`an interval that makes no sense is five seconds: ${JSON.stringify(interval)}`, async (t) => {
    const { askedAtS } = await ask({ interval, expires_in: 21 });
    t.deepEqual(askedAtS, [5, 10, 15, 20]);
  });
}

test('the interval of the authorization server is kept', async (t) => {
  t.deepEqual((await ask({ interval: 2, expires_in: 7 })).askedAtS, [2, 4, 6]);
  t.deepEqual((await ask({ interval: '10', expires_in: '31' })).askedAtS, [10, 20, 30]);
});

for (const life of [undefined, 0, -5, 1e12, 'for ever']) {
  test(`a code lasts a quarter of an hour at most: ${JSON.stringify(life)}`, async (t) => {
    const { askedAtS, message, prompts, clock } = await ask({ interval: 60, expires_in: life });
    t.is(askedAtS.at(-1), 14 * 60);
    t.regex(message, /Nobody has entered the code for https:\/\/example\.com within 15 min/);
    t.regex(prompts[0]?.instruction ?? '', /^within 15 min, open https:\/\/example\.com\/enter in any browser/);
    t.is(clock.pendingTimers, 0);
  });
}

for (const page of [
  'https://10.0.0.1/enter',
  'https://169.254.169.254/',
  'https://[fd00::1]/enter',
  'https://localhost/',
]) {
  for (const member of ['verification_uri', 'verification_uri_complete']) {
    test(`a server on the Internet that gives ${page} as its ${member} is refused before the user sees it`, async (t) => {
      const guard = new AddressGuard(new URL('https://8.8.8.8/mcp'));
      const { message, prompts, askedAtS } = await ask({ [member]: page, expires_in: 30 }, guard);
      t.regex(message, /is to be opened in the browser for a login, but lies where the Internet does not lead to/);
      t.deepEqual(prompts, []);
      t.deepEqual(askedAtS, []);
    });
  }
}
