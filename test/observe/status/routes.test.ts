import test, { type ExecutionContext } from 'ava';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import type { OtherReplicas } from '../../../src/observe/status/other-replicas.ts';
import type { StatusDocument } from '../../../src/observe/status/status-document.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { inspection, NO_REFUSALS, runCall, WallClock } from './seen.ts';
import { startStatusServer } from './status-server.ts';

async function start(t: ExecutionContext, others?: OtherReplicas) {
  const activity = new Activity({ wallClock: new WallClock().now });
  const none = { refusals: NO_REFUSALS, usage: undefined, hosts: [], snippets: () => undefined };
  const status = createStatus({ ...none, inspect: () => inspection(), activity });
  const server = await startStatusServer(status, new FakeClock(), others === undefined ? {} : { others });
  t.teardown(() => server.close());
  return { activity, server };
}

const ASSETS = [
  ['/status', 'text/html; charset=utf-8', '<!doctype html>'],
  ['/status.css', 'text/css; charset=utf-8', ':root {'],
  ['/status.js', 'text/javascript; charset=utf-8', '/**'],
] as const;

for (const [path, type, begin] of ASSETS) {
  test(`serves ${path}, which can load and send nothing but what comes from here`, async (t) => {
    const { server } = await start(t);
    const response = await fetch(`${server.url}${path}`);
    t.is(response.status, 200);
    t.is(response.headers.get('content-type'), type);
    t.is(
      response.headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    t.is(response.headers.get('x-content-type-options'), 'nosniff');
    t.is(response.headers.get('cache-control'), 'no-store');
    t.is(response.headers.get('referrer-policy'), 'no-referrer');
    const text = await response.text();
    t.true(text.startsWith(begin));
    t.notRegex(text.replaceAll('http://www.w3.org/2000/svg', ''), /https?:\/\//, 'nothing of anybody else');
  });
}

test('the page has no script or style in its markup, which its policy would forbid', async (t) => {
  const { server } = await start(t);
  const markup = await (await fetch(`${server.url}/status`)).text();
  t.notRegex(markup, /<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/);
});

test('serves the document to programs', async (t) => {
  const { server, activity } = await start(t);
  runCall(activity);
  const response = await fetch(`${server.url}/status.json`);
  t.is(response.headers.get('content-type'), 'application/json');
  t.is(response.headers.get('cache-control'), 'no-store');
  t.like(await response.json(), { shape: 2, calls: { lastMinute: { calls: 1 } } });
});

test('tells more about the server that is asked about, or the only one', async (t) => {
  const { server } = await start(t);
  const detailAt = async (query: string) => {
    const { detail } = (await (await fetch(`${server.url}/status.json${query}`)).json()) as StatusDocument;
    return detail?.server;
  };
  t.is(await detailAt(''), 'everything');
  t.is(await detailAt('?server=everything'), 'everything');
  t.is(await detailAt('?server=no%20such'), undefined);
});

test('of all replicas, the one that answers tells what it knows of a server', async (t) => {
  const replicas = { ownAddress: 'http://one', addresses: async () => ['http://one'], ask: async () => [] };
  const { server } = await start(t, replicas);
  const read = async (query: string) =>
    (await (await fetch(`${server.url}/status.json?replicas=all${query}`)).json()) as StatusDocument;
  t.like(await read('&server=everything'), { replicas: [{ state: 'shown' }], detail: { server: 'everything' } });
  t.is((await read('&server=other')).detail, null);
});

test('events are a stream that nobody may keep or hold back', async (t) => {
  const { server } = await start(t);
  const abort = new AbortController();
  const response = await fetch(`${server.url}/status/events`, { signal: abort.signal });
  t.is(response.headers.get('content-type'), 'text/event-stream');
  t.is(response.headers.get('cache-control'), 'no-store, no-transform');
  t.is(response.headers.get('x-accel-buffering'), 'no');
  abort.abort();
});

test('what is looked at is not changed: other methods are refused', async (t) => {
  const { server } = await start(t);
  for (const path of ['/status', '/status.css', '/status.js', '/status.json', '/status/events']) {
    const response = await fetch(`${server.url}${path}`, { method: 'POST', body: '{}' });
    t.is(response.status, 405, path);
    t.is(response.headers.get('allow'), path === '/status/events' ? 'GET' : 'GET, HEAD');
  }
});

test('answers HEAD without opening a stream', async (t) => {
  const { server } = await start(t);
  t.is((await fetch(`${server.url}/status`, { method: 'HEAD' })).status, 200);
  t.is((await fetch(`${server.url}/status.json`, { method: 'HEAD' })).status, 200);
  t.is((await fetch(`${server.url}/status/events`, { method: 'HEAD' })).status, 405);
});

test('only data is for those who may look', async (t) => {
  const { server } = await start(t);
  t.deepEqual([...server.routes.assets.keys()], ['/status', '/status.css', '/status.js']);
  t.deepEqual([...server.routes.data.keys()], ['/status.json', '/status/events']);
});
