import type { IncomingMessage } from 'node:http';
import test from 'ava';
import type { EndpointConfig } from '../../../src/config/listener.ts';
import {
  ProtectedResource,
  type ProtectedResourceOptions,
  resourceUrls,
} from '../../../src/http/auth/protected-resource.ts';

const OPTIONS: ProtectedResourceOptions = {
  issuer: 'https://auth.example',
  scopes: [],
  endpoints: {
    path: '/mcp',
    httpSse: 'served',
    ssePath: '/sse',
    messagePath: '/messages',
    webSocket: 'off',
    wsPath: '/ws',
    baseUrl: undefined,
    sunset: undefined,
  },
  scheme: 'http',
};

function resourceWith(httpSse: EndpointConfig['httpSse']): ProtectedResource {
  return new ProtectedResource({ ...OPTIONS, endpoints: { ...OPTIONS.endpoints, httpSse } });
}

const resource = resourceWith('served');

/** On all interfaces any Host is served, so what comes in it is not known to be one. */
test('of a Host only a name or an address, with a port, gets into what clients are told', (t) => {
  const urlFor = (host: string): string => resource.urlFor({ url: '/mcp', headers: { host } } as IncomingMessage);
  const path = '/.well-known/oauth-protected-resource/mcp';
  for (const host of ['tools.example.com', '192.168.1.7:8000', '[fd00::7]:8000'])
    t.is(urlFor(host), `http://${host}${path}`);
  for (const host of ['evil.example/a?', 'user@evil.example', 'a"b', 'a b', '', 'a:999999']) {
    t.is(urlFor(host), `http://localhost${path}`, host);
  }
});

test('who is refused at an endpoint is told where the document about that endpoint is, with a slash behind it or not', (t) => {
  const told = (url: string): string => resource.urlFor({ url, headers: { host: 'a' } } as IncomingMessage);
  for (const url of ['/sse', '/sse/', '/sse/?a=b', '/messages?sessionId=x', '/messages/?sessionId=x'])
    t.is(told(url), 'http://a/.well-known/oauth-protected-resource/sse', url);
  for (const url of ['/mcp', '/mcp/']) t.is(told(url), 'http://a/.well-known/oauth-protected-resource/mcp', url);
});

test('an endpoint that is not served is no resource', (t) => {
  t.true(resource.paths.some((path) => path.endsWith('/sse')));
  const withoutSse = resourceWith('off');
  t.false(withoutSse.paths.some((path) => path.endsWith('/sse')));
  const told = withoutSse.urlFor({ url: '/sse', headers: { host: 'a' } } as IncomingMessage);
  t.is(told, 'http://a/.well-known/oauth-protected-resource/mcp');
});

test('the document names the resource, the issuer, the scopes if there are any, and the header as the way to send a token', (t) => {
  const path = '/.well-known/oauth-protected-resource/sse';
  const request = { url: path, headers: { host: 'a' } } as IncomingMessage;
  const document = {
    resource: 'http://a/sse',
    authorization_servers: ['https://auth.example'],
    bearer_methods_supported: ['header'],
  };
  t.deepEqual(resource.describe(path, request), document);
  const scoped = new ProtectedResource({ ...OPTIONS, scopes: ['mcp'] });
  t.deepEqual(scoped.describe(path, request), { ...document, scopes_supported: ['mcp'] });
});

test('behind a proxy the document is found with the prefix of the proxy in its path, and without it', (t) => {
  const endpoints = { ...OPTIONS.endpoints, baseUrl: new URL('https://tools.example/prefix/') };
  const paths = new ProtectedResource({ ...OPTIONS, endpoints }).paths.toSorted();
  t.deepEqual(
    paths,
    ['', '/mcp', '/prefix/mcp', '/prefix/sse', '/sse'].map((end) => `/.well-known/oauth-protected-resource${end}`),
  );
});

test('clients ask for tokens by the URLs of the endpoints, which are known where --base-url says them', (t) => {
  const { endpoints } = OPTIONS;
  const baseUrl = new URL('https://tools.example/x');
  t.deepEqual(resourceUrls(endpoints), []);
  t.deepEqual(resourceUrls({ ...endpoints, baseUrl }), ['https://tools.example/x/mcp', 'https://tools.example/x/sse']);
  t.deepEqual(resourceUrls({ ...endpoints, baseUrl, httpSse: 'off' }), ['https://tools.example/x/mcp']);
});

test('a WebSocket that is served is a resource of its own, and one that is not is none', (t) => {
  const baseUrl = new URL('https://tools.example/x/');
  const told = (webSocket: EndpointConfig['webSocket']) => {
    const endpoints = { ...OPTIONS.endpoints, httpSse: 'off', webSocket } as const;
    const request = { url: '/ws/?a=b', headers: { host: 'a' } } as IncomingMessage;
    const { paths } = new ProtectedResource({ ...OPTIONS, endpoints });
    const url = new ProtectedResource({ ...OPTIONS, endpoints }).urlFor(request);
    return { paths, url, urls: resourceUrls({ ...endpoints, baseUrl }) };
  };
  const wellKnown = '/.well-known/oauth-protected-resource';
  t.deepEqual(told('served'), {
    paths: [wellKnown, `${wellKnown}/mcp`, `${wellKnown}/ws`],
    url: `http://a${wellKnown}/ws`,
    urls: ['https://tools.example/x/mcp', 'https://tools.example/x/ws'],
  });
  t.deepEqual(told('off'), {
    paths: [wellKnown, `${wellKnown}/mcp`],
    url: `http://a${wellKnown}/mcp`,
    urls: ['https://tools.example/x/mcp'],
  });
});

test('the document at the root is about the main endpoint', (t) => {
  const request = { headers: { host: 'a' } } as IncomingMessage;
  t.is(resource.describe('/.well-known/oauth-protected-resource', request).resource, 'http://a/mcp');
});
