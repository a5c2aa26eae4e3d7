import test from 'ava';
import { discoverKeys } from '../../../src/http/auth/discover-issuer.ts';

/** Documents by URL; what is not there is not there. */
function documents(entries: Readonly<Record<string, unknown>>) {
  const asked: string[] = [];
  const fetchJson = async (url: URL): Promise<unknown> => {
    asked.push(url.href);
    return entries[url.href];
  };
  return { asked, fetchJson };
}

const KEYS = 'https://keys.example/jwks';

const finds = test.macro({
  title: (_, issuer: string, place: string) => `finds the keys of ${issuer} by ${place}`,
  async exec(t, issuer: string, place: string, tries: number) {
    const { asked, fetchJson } = documents({ [place]: { issuer, jwks_uri: KEYS } });
    t.is((await discoverKeys(issuer, fetchJson)).href, KEYS);
    t.is(asked.length, tries);
  },
});

test(finds, 'https://auth.example', 'https://auth.example/.well-known/oauth-authorization-server', 1);
test(finds, 'https://auth.example', 'https://auth.example/.well-known/openid-configuration', 2);
test(finds, 'https://auth.example/', 'https://auth.example/.well-known/openid-configuration', 2);
test(finds, 'https://auth.example/t1', 'https://auth.example/.well-known/oauth-authorization-server/t1', 1);
test(finds, 'https://auth.example/t1', 'https://auth.example/.well-known/openid-configuration/t1', 2);
test(finds, 'https://auth.example/t1', 'https://auth.example/t1/.well-known/openid-configuration', 3);
test(finds, 'https://auth.example/t1/', 'https://auth.example/t1/.well-known/openid-configuration', 3);

test('metadata that names another issuer is not used, even if only a slash differs', async (t) => {
  for (const issuer of ['https://honest.example', 'https://auth.example/', undefined]) {
    const place = 'https://auth.example/.well-known/oauth-authorization-server';
    const { fetchJson } = documents({ [place]: { issuer, jwks_uri: KEYS } });
    await t.throwsAsync(discoverKeys('https://auth.example', fetchJson), {
      code: 'ERR_AUTH_UNAVAILABLE',
      message: /names another issuer/,
    });
  }
});

test('an issuer without metadata, or without keys in it, is told as such', async (t) => {
  const issuer = 'https://auth.example';
  await t.throwsAsync(discoverKeys(issuer, documents({}).fetchJson), { message: /--auth-jwks/ });
  const place = 'https://auth.example/.well-known/oauth-authorization-server';
  for (const jwks of [undefined, 7, 'nowhere']) {
    const { fetchJson } = documents({ [place]: { issuer, jwks_uri: jwks } });
    await t.throwsAsync(discoverKeys(issuer, fetchJson), { message: /no jwks_uri/ });
  }
});
