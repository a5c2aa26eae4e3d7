import test from 'ava';
import { showFile, showRequestTarget, showUrl } from '../../src/http/shown-url.ts';

const shown: Readonly<Record<string, string>> = {
  'https://mcp.example/mcp': 'https://mcp.example/mcp',
  'http://127.0.0.1:8080/': 'http://127.0.0.1:8080/',
  'https://user:hunter2@mcp.example/sse?api_key=hunter2#hunter2': 'https://mcp.example/sse',
  'https://mcp.example/.well-known/oauth-protected-resource/mcp':
    'https://mcp.example/.well-known/oauth-protected-resource/mcp',
  'https://mcp.example/tenants/acme-staging/v2/streamable-http-2025-06-18/mcp':
    'https://mcp.example/tenants/acme-staging/v2/streamable-http-2025-06-18/mcp',
  'https://mcp.example/mcp/3f2b8c1e-9a4d-4c55-8e21-5d0c6b7a9f10/sse': 'https://mcp.example/mcp/…/sse',
  'https://mcp.example/s/sk_9hD3kQ0zLmT7vXw2/mcp': 'https://mcp.example/s/…/mcp',
  'https://mcp.example/d41d8cd98f00b204e9800998ecf8427e': 'https://mcp.example/…',
  [`https://mcp.example/${'Abc-'.repeat(12)}/mcp`]: 'https://mcp.example/…/mcp',
};

for (const [url, expected] of Object.entries(shown)) {
  test(`${url} is shown as ${expected}`, (t) => {
    t.is(showUrl(new URL(url)), expected);
  });
}

const requested: Readonly<Record<string, string>> = {
  '/mcp': '/mcp',
  '/mcp?api_key=hunter2#hunter2': '/mcp',
  '/s/sk_9hD3kQ0zLmT7vXw2/mcp': '/s/…/mcp',
  '/s/%73k%5F9hD3kQ0zLmT7vXw2': '/s/…',
  '/%zz': '/%zz',
  'http://user:hunter2@localhost/mcp?x': 'http://localhost/mcp',
  '*': '*',
  [`/${'a/'.repeat(500)}`]: `/${'a/'.repeat(500)}`.slice(0, 200).concat('…'),
};

for (const [target, expected] of Object.entries(requested)) {
  test(`a request for ${target.slice(0, 60)} is logged as one for ${expected.slice(0, 60)}`, (t) => {
    t.is(showRequestTarget(target), expected);
  });
}

test('a path of a file is shown without what looks like a key, on any system', (t) => {
  t.is(showFile('/home/user/.cache/4eC39HqLyjWDarjtT1zdp7dc/bin/server'), '/home/user/.cache/…/bin/server');
  t.is(showFile('C:\\Users\\4eC39HqLyjWDarjtT1zdp7dc\\server.cmd'), 'C:\\Users\\…\\server.cmd');
});
