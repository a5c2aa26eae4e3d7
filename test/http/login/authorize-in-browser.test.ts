import test from 'ava';
import { AddressGuard } from '../../../src/http/login/address-guard.ts';
import { authorizeInBrowser } from '../../../src/http/login/authorize-in-browser.ts';
import { CallbackListener } from '../../../src/http/login/callback-listener.ts';
import { collectLog } from '../../process/collected-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

for (const page of ['http://127.0.0.1:1/authorize', 'https://10.0.0.1/authorize', 'https://[fd00::1]/authorize']) {
  test(`no browser is opened where a server on the Internet names ${page} as the page to log in at`, async (t) => {
    const listener = new CallbackListener(new URL('http://127.0.0.1:0/callback'));
    t.teardown(() => listener.close());
    const { log, entries } = collectLog();
    const login = authorizeInBrowser({
      authorizationServer: {
        issuer: 'https://auth.example',
        authorization_endpoint: page,
        code_challenge_methods_supported: ['S256'],
      },
      ...{ clientId: 'us', listener, callback: (await listener.listen()).href, resource: 'https://8.8.8.8/mcp' },
      ...{ scopes: [], findNewerLogin: () => undefined, clock: new FakeClock(), log },
      guard: new AddressGuard(new URL('https://8.8.8.8/mcp')),
      openBrowser: () => t.fail('a browser was opened'),
      signal: new AbortController().signal,
    });
    await t.throwsAsync(login, {
      code: 'ERR_UPSTREAM_AUTH',
      message: /is to be opened in the browser for a login, but lies where the Internet does not lead to/,
    });
    t.deepEqual(entries, []);
  });
}
