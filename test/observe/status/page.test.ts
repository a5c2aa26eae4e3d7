/** The page in a real browser. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import type { Browser, Page } from 'playwright-core';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { Refusals } from '../../../src/observe/status/refusals.ts';
import { ServerRecords } from '../../../src/observe/status/server-records.ts';
import type { ServerObserver } from '../../../src/relay/observer.ts';
import { resultFrame } from '../../../src/wire/write-message.ts';
import { waitFor } from '../../support/wait-for.ts';
import { findBarriers, findChromium, launchChromium } from './chromium.ts';
import {
  client,
  FAILED,
  fillActivity,
  inspectedServer,
  inspection,
  LEGACY_STDIO,
  MODERN_HTTP,
  runCall,
  START_MS,
  USAGE,
  WallClock,
} from './seen.ts';
import { REAL_CLOCK, startStatusServer } from './status-server.ts';

const chromiumPath = findChromium();
const test = anyTest as TestFn<{ readonly browser: Browser }>;
/** One after the other: a browser keeps a machine busy. */
const inBrowser = chromiumPath === undefined ? test.serial.skip : test.serial;
if (chromiumPath === undefined) {
  test('skipped: there is no Chromium in PATH, and CHROME_PATH names none', (t) => t.pass());
} else {
  let browser: Browser | undefined;
  test.before(async () => {
    browser = await launchChromium(chromiumPath);
  });
  test.beforeEach((t) => {
    if (browser !== undefined) t.context = { browser };
  });
  test.after.always(() => browser?.close());
}

type Context = ExecutionContext<{ readonly browser: Browser }>;

const SERVERS = [
  inspectedServer(),
  inspectedServer({ name: 'weather', kind: 'url', sseUrl: undefined, verdicts: [MODERN_HTTP], processes: 0 }),
  inspectedServer({
    name: 'files',
    state: 'failing',
    sinceMs: START_MS,
    problem: `The server exited with code 1. ${'It cannot find a module that it needs. '.repeat(8)}`,
    restarts: 3,
  }),
  inspectedServer({ name: 'notes', state: 'not-started', verdicts: [] }),
];

const NOTHING = { servers: [] };

async function start(t: Context, { token, isBusy }: { readonly token?: string; readonly isBusy: boolean }) {
  const clock = new WallClock();
  const activity = new Activity({ wallClock: clock.now });
  const refusals = new Refusals({ wallClock: clock.now });
  const records = new ServerRecords({ wallClock: clock.now });
  if (isBusy) {
    fillActivity(activity, clock);
    fillRecord(records.observe('files'));
  }
  for (const code of isBusy ? (['ERR_AUTH_TOKEN', 'ERR_HTTP_ORIGIN', 'ERR_AUTH_TOKEN'] as const) : [])
    refusals.refused(code);
  const world = { servers: isBusy ? SERVERS : NOTHING.servers };
  const status = createStatus({
    inspect: () => inspection({ servers: world.servers }),
    activity,
    refusals,
    usage: isBusy ? () => USAGE : undefined,
    hosts: ['cursor', 'vscode'],
    snippets: (host, { name, url }) => `{ "${host}": { "${name}": "${url}" } }`,
  });
  const server = await startStatusServer(status, REAL_CLOCK, { token, detailOf: (name) => records.detailOf(name) });
  t.teardown(() => server.close());
  return { clock, activity, refusals, records, server, world };
}

/** A server that cannot start, and what it said. */
function fillRecord(record: ServerObserver): void {
  record.listedTools(resultFrame(1, { tools: [{ name: 'read_file' }, { name: 'write_file' }] }));
  for (let time = 1; time <= 3; time += 1) {
    record.started();
    for (let line = 1; line <= 6; line += 1) record.wrote(`line ${line} of start ${time} ${'is long '.repeat(12)}`);
    record.failed(`It exited for the reason ${time}.`);
  }
}

/** Nothing may go wrong in the page, and nothing may be asked of anybody else. */
async function open(t: Context, url: string, query = '') {
  const context = await t.context.browser.newContext();
  t.teardown(() => context.close());
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) wrong.push(request.url());
  });
  // The charts move on with time, which stands still here.
  await page.clock.setFixedTime(START_MS);
  await page.goto(`${url}/status${query}`);
  return { page, wrong };
}

function rows(page: Page, table: string): Promise<readonly string[]> {
  return page.locator(`#${table} tbody tr`).allInnerTexts();
}

inBrowser('shows servers, clients, calls, the migration and a snippet', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page, wrong } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  const servers = await rows(page, 'servers');
  t.is(servers.length, 4);
  t.regex(servers[1] ?? '', /everything[\s\S]*\/everything\/mcp[\s\S]*ready[\s\S]*stdio[\s\S]*2025-11-25/);
  t.regex(servers[0] ?? '', /failing since \d\d:\d\d:\d\d[\s\S]*The server exited with code 1\.[\s\S]*3/);
  const clients = await rows(page, 'clients');
  t.is(clients.length, 5);
  t.regex(
    clients[0] ?? '',
    /claude-code 3\.1\.0[\s\S]*Streamable HTTP[\s\S]*translates modern → legacy[\s\S]*stdio[\s\S]*files/,
  );
  t.regex(clients[4] ?? '', /cursor 0\.42\.3[\s\S]*HTTP\+SSE[\s\S]*2024-11-05[\s\S]*changes the transport/);
  t.is(
    await page.locator('#clients-summary').innerText(),
    '5 clients: 3 translated between eras, 2 moved to another transport.',
  );
  t.regex((await rows(page, 'open')).join(), /search_files tools\/call\s+vscode/);
  t.regex((await rows(page, 'usage')).join(), /cursor[\s\S]*HTTP\+SSE, sampling[\s\S]*1204/);
  t.regex(await page.locator('#verdicts').innerText(), /safe to switch off weather, HTTP\+SSE/);
  t.is(
    await page.locator('#snippet').innerText(),
    '{ "cursor": { "everything": "http://127.0.0.1:8808/everything/mcp" } }',
  );
  await page.getByLabel('Host', { exact: true }).selectOption('vscode');
  await page.locator('#snippet-server').selectOption('notes');
  t.regex(await page.locator('#snippet').innerText(), /"vscode": \{ "notes"/);
  t.deepEqual(wrong, []);
});

inBrowser('says when HTTP+SSE ends, and of a long reason its beginning', async (t) => {
  const { server, world } = await start(t, { isBusy: true });
  const problem = `It ended: ${'at some line of some file; '.repeat(40)}`;
  world.servers = [
    inspectedServer({ sunset: '2027-03-31', state: 'stopped', problem }),
    inspectedServer({ name: 'b' }),
  ];
  const { page } = await open(t, server.url);
  await page.getByText('HTTP+SSE ends: 2027-03-31').waitFor();
  const beginning = `${problem.slice(0, 240)}…`;
  t.is(
    await page
      .locator('#servers')
      .getByText(/^It ended: /)
      .textContent(),
    beginning,
  );
  t.is(
    await page
      .locator('#alerts')
      .getByText(/^It ended: /)
      .textContent(),
    beginning,
  );
  await page.locator('#alerts').getByRole('link', { name: 'everything' }).click();
  t.is(
    await page
      .locator('#fact-problem')
      .getByText(/^It ended: /)
      .textContent(),
    problem,
  );
});

inBrowser('says of its charts in words what they show', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page
    .getByRole('img', { name: /^Calls in the last ten minutes: \d+, of which \d+ with an error; at most 14 in 5/ })
    .waitFor();
  await page
    .getByRole('img', { name: /^Latency in the last ten minutes: the median of five seconds was at most/ })
    .waitFor();
  t.is(await page.getByRole('img', { name: /calls in the last ten minutes$/ }).count(), 4);
});

inBrowser('a chart says what it shows where somebody points, or moves by the keyboard', async (t) => {
  const { server, activity, clock } = await start(t, { isBusy: false });
  for (const durationMs of [20, 20, 20, 60_000]) runCall(activity, {}, { durationMs });
  clock.advance(5 * 60_000);
  runCall(activity, {}, { durationMs: 40, outcome: FAILED });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  const value = page.locator('#chart-calls-value');
  const latency = page.locator('#chart-latency-value');
  t.regex(await value.innerText(), /^Point at the chart/);
  await page.locator('#chart-calls').focus();
  await page.keyboard.press('End');
  t.regex(await value.innerText(), /^\d\d:\d\d:\d\d: 1 call, 1 with an error$/);
  t.regex(await latency.innerText(), /: median 40 ms, 95th percentile 40 ms$/);
  t.is(await page.getByRole('status').innerText(), await value.innerText());
  await page.keyboard.press('ArrowLeft');
  t.regex(await value.innerText(), /: no calls$/);
  await page.keyboard.press('Escape');
  t.regex(await value.innerText(), /^Point at the chart/);
  const box = await page.locator('#chart-latency').boundingBox();
  if (box === null) return t.fail('the chart is not shown');
  const middle = box.x + 48 + ((box.width - 48) * 59.5) / 120;
  await page.mouse.move(middle, box.y + 20);
  t.regex(await latency.innerText(), /: median 20 ms, 95th percentile 1 min$/);
  t.regex(await value.innerText(), /: 4 calls, 0 with an error$/);
  await page.locator('#chart-latency').dispatchEvent('pointerleave', { pointerType: 'touch' });
  t.regex(await value.innerText(), /: 4 calls/, 'a finger was lifted');
  await page.mouse.move(0, 0);
  t.regex(await value.innerText(), /^Point at the chart/);
});

inBrowser('one call of a minute leaves calls of milliseconds readable in the chart of latency', async (t) => {
  const { server, activity, clock } = await start(t, { isBusy: false });
  for (const durationMs of [10, 20, 40, 60_000]) {
    runCall(activity, {}, { durationMs });
    clock.advance(5000);
  }
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  const path = (await page.locator('#chart-latency .p50').getAttribute('d')) ?? '';
  const heights = [...path.matchAll(/[ML][\d.]+ ([\d.]+)/g)].map(([, y]) => Number(y));
  t.is(heights.length, 4);
  const [first = 0, second = 0, third = 0] = heights;
  t.true(first - second > 5 && second - third > 5, path);
  t.deepEqual(await page.locator('#chart-latency text').allTextContents(), [
    ...['10 ms', '100 ms', '1 s', '10 s', '1 min'],
    ...['10 min ago', '5 min', 'now'],
  ]);
});

inBrowser('shows what happens while one looks', async (t) => {
  const { server, activity, world } = await start(t, { isBusy: false });
  const { page } = await open(t, server.url);
  await page.getByText('Nobody is connected.').waitFor();
  await page.getByText('No calls yet.').waitFor();
  await page.getByText('There are no servers.').waitFor();
  const leave = activity.connected(client(), LEGACY_STDIO);
  runCall(activity, { tool: 'just_now' });
  world.servers = [inspectedServer()];
  await page.locator('#recent').getByText('just_now').waitFor();
  t.is((await rows(page, 'clients')).length, 1);
  world.servers = [inspectedServer({ state: 'stopped', problem: 'It starts in vain.' })];
  await page.locator('#fact-problem').getByText('It starts in vain.').waitFor();
  t.is(await page.getByRole('status').innerText(), 'everything: stopped after failures');
  leave('ERR_SESSION_CLOSED');
  await page.getByText('Nobody is connected.').waitFor();
});

inBrowser('shows more calls, or only what went wrong, if asked', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page.getByRole('button', { name: 'Show all 200' }).click();
  t.is((await rows(page, 'recent')).length, 200);
  await page.getByRole('button', { name: 'Show fewer' }).click();
  t.is((await rows(page, 'recent')).length, 15);
  await page.getByLabel('Only what went wrong').check();
  const wrong = await rows(page, 'recent');
  t.true(wrong.length > 0 && wrong.every((row) => /error|failed/.test(row)), wrong.join('\n'));
});

inBrowser('a server has a page with its stderr, its restarts, its clients and its tools', async (t) => {
  const { server, records } = await start(t, { isBusy: true });
  const { page, wrong } = await open(t, server.url);
  await page.locator('#servers').getByRole('link', { name: 'files' }).click();
  t.is(new URL(page.url()).search, '?server=files');
  await page.getByRole('heading', { name: 'files', exact: true }).waitFor();
  await page.locator('#stderr').getByText('line 6 of start 3').waitFor();
  t.regex(await page.locator('#fact-state').innerText(), /failing since \d\d:\d\d:\d\d\nLatest process started: \d\d:/);
  t.regex(await page.locator('#fact-problem').innerText(), /^The server exited with code 1\./);
  t.is(await page.locator('#fact-runs').innerText(), '2 processes, 3 restarts, 2 sessions, 1 open call');
  t.regex((await rows(page, 'restarts'))[0] ?? '', /^\d\d:\d\d:\d\d\s+It exited for the reason 3\.$/);
  t.is((await rows(page, 'restarts')).length, 3);
  t.true((await rows(page, 'clients')).every((row) => /vscode|claude-code/.test(row)));
  t.true((await rows(page, 'recent')).every((row) => row.includes('files')));
  t.true(await page.locator('#servers').isHidden());
  t.is(await page.title(), '1 failing – files – mcp-portage status');
  records.observe('files').wrote('now it works');
  await page.locator('#stderr').getByText('now it works').waitFor();
  await page.getByText('Tools (2)').click();
  await page.getByRole('link', { name: 'read_file' }).click();
  t.is(new URL(page.url()).search, '?server=files&tool=read_file');
  t.true((await rows(page, 'recent')).every((row) => row.includes('read_file')));
  await page.getByRole('link', { name: 'All servers' }).click();
  await page.locator('#servers').waitFor();
  await page.goBack();
  await page.goBack();
  t.is(new URL(page.url()).search, '?server=files');
  await page.locator('#stderr').getByText('now it works').waitFor();
  t.deepEqual(wrong, []);
});

inBrowser('the only server needs no choice, and one at a URL has no stderr', async (t) => {
  const { server, world, records } = await start(t, { isBusy: false });
  world.servers = [inspectedServer()];
  records.observe('everything').wrote('said at the start');
  const { page } = await open(t, server.url);
  await page.locator('#stderr').getByText('said at the start').waitFor();
  t.true(await page.getByRole('link', { name: 'All servers' }).isHidden());
  world.servers = [inspectedServer({ kind: 'url' })];
  await page.locator('#stderr').waitFor({ state: 'hidden' });
  t.is(await page.locator('#fact-runs').innerText(), '2 sessions, 1 open call');
  world.servers = [inspectedServer({ kind: 'aggregate' })];
  await page.locator('#fact-addresses').getByText('several servers as one').waitFor();
});

inBrowser('says that a server is not served, which an address may still name', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url, '?server=no%20such');
  await page.getByText('No server of this name is served now.').waitFor();
  await page.getByRole('link', { name: 'All servers' }).click();
  t.is(new URL(page.url()).search, '');
  await page.locator('#servers').waitFor();
});

inBrowser('what is filtered is in the address, which shows the same to somebody else', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  await page.locator('#filter-client').selectOption('vscode');
  await page.locator('#filter-tool').selectOption('search_files');
  await page.getByLabel('Only what went wrong').check();
  const { search } = new URL(page.url());
  t.is(search, '?client=vscode&tool=search_files&calls=wrong');
  const { page: other } = await open(t, server.url, search);
  await other.getByText('Live', { exact: true }).waitFor();
  for (const shown of [page, other]) {
    const calls = await rows(shown, 'recent');
    t.true(
      calls.every((row) => /search_files[\s\S]*vscode[\s\S]*(error|failed)/.test(row)),
      calls.join(),
    );
    t.is((await rows(shown, 'clients')).length, 1);
    t.true(await shown.getByText('Figures and charts include all of them.').isVisible());
  }
  await other.getByRole('button', { name: 'Show everything' }).click();
  t.is(new URL(other.url()).search, '?calls=wrong');
  t.is(await other.evaluate('document.activeElement.id'), 'filter-server');
  await other.locator('#filter-client').selectOption('unnamed');
  t.is((await rows(other, 'clients')).length, 1);
  await other.goto(`${server.url}/status?server=notes`);
  await other.getByText('Nobody is connected to this server.').waitFor();
  await other.goto(`${server.url}/status?client=nobody`);
  await other.getByText('No client matches the filter.').waitFor();
  await other.getByText('No recent call matches the filter.').waitFor();
});

inBrowser('copies the address and the error of a server, or selects them', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url, '?server=files');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: server.url });
  const clipboard = () => page.evaluate('navigator.clipboard.readText()');
  await page.getByRole('button', { name: 'Copy the address http://127.0.0.1:8808/everything/mcp' }).click();
  await page.getByText('Copied', { exact: true }).first().waitFor();
  t.is(await clipboard(), 'http://127.0.0.1:8808/everything/mcp');
  await page.getByRole('button', { name: 'Copy the error' }).click();
  await waitFor(async () => String(await clipboard()).startsWith('The server exited with code 1.'));
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"))');
  await page.getByRole('button', { name: 'Copy the address ws://127.0.0.1:8808/everything/ws' }).click();
  await page.getByText('Selected', { exact: true }).first().waitFor();
  t.is(await page.evaluate('getSelection().toString().trim()'), 'ws://127.0.0.1:8808/everything/ws');
});

/** Elements that make the page wider than its window, if it is. */
const TOO_WIDE = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
  .filter((element) => element.getBoundingClientRect().right > innerWidth && element.closest('.unseen') === null)
  .map((element) => element.tagName + '#' + element.id + '.' + element.className)`;

const MARKUP = '"><img src=x onerror="document.title=1"><script>document.title=2</script>';
const LONG = 'x'.repeat(400);
const HOSTILE = [MARKUP, LONG, '\u05d0\u05d1 \u0627\u0644', '\u{1f4a3}'.repeat(60), '%00&server=x#"\'`', ' '];

for (const name of HOSTILE) {
  inBrowser(`what a peer is called or writes runs nothing and breaks nothing: ${name.slice(0, 12)}`, async (t) => {
    const { server, activity, world, records } = await start(t, { isBusy: false });
    activity.connected(client({ name, version: name, revision: name, server: name }), LEGACY_STDIO);
    runCall(activity, { tool: name, client: client({ name, server: name }) });
    const record = records.observe(name);
    record.started();
    for (const text of [name, `${name}\u001b[2J\u001b]0;forged\u0007\u202e${LONG}`]) {
      record.wrote(text);
      record.failed(text);
    }
    record.listedTools(resultFrame(1, { tools: [{ name }, { name: `${name}${LONG}` }] }));
    world.servers = [inspectedServer({ name, problem: name, state: 'stopped' }), inspectedServer({ name: 'other' })];
    const { page, wrong } = await open(t, server.url);
    await page.getByText('Live', { exact: true }).waitFor();
    const fits = async () => {
      for (const width of [320, 900, 1440]) {
        await page.setViewportSize({ width, height: 800 });
        t.deepEqual(await page.evaluate(TOO_WIDE), [], `${width} px`);
      }
    };
    await fits();
    await page.setViewportSize({ width: 1440, height: 800 });
    await page.locator('#filter-server').selectOption(name);
    t.is(new URL(page.url()).searchParams.get('server'), name);
    await page.locator('#stderr').waitFor();
    await page.locator('#tools-part summary').click();
    await page.locator('#filter-tool').selectOption({ index: 1 });
    await page.locator('#filter-client').selectOption({ index: 1 });
    t.is((await rows(page, 'clients')).length, 1);
    await fits();
    t.is(await page.locator('main img, main script').count(), 0);
    const text = (await page.locator('main').textContent()) ?? '';
    t.true(['\u001b', '\u0007', '\u202e'].every((character) => !text.includes(character)));
    t.true((await page.title()).endsWith('– mcp-portage status'));
    t.deepEqual(wrong, []);
  });
}

inBrowser('of many clients, a few are shown until all are asked for', async (t) => {
  const { server, activity } = await start(t, { isBusy: false });
  for (let index = 0; index < 12; index += 1) activity.connected(client({ name: `client ${index}` }), LEGACY_STDIO);
  const { page } = await open(t, server.url);
  await page.getByRole('button', { name: 'Show all 12' }).click();
  t.is((await rows(page, 'clients')).length, 12);
  await page.getByRole('button', { name: 'Show fewer' }).click();
  t.is((await rows(page, 'clients')).length, 8);
});

inBrowser('shows how many requests were refused, and why', async (t) => {
  const { server, refusals } = await start(t, { isBusy: false });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  t.true(await page.getByRole('heading', { name: 'Refused requests' }).isHidden());
  for (const code of ['ERR_HTTP_ORIGIN', 'connections', 'ERR_HTTP_ORIGIN'] as const) refusals.refused(code);
  await page.getByRole('heading', { name: 'Refused requests' }).waitFor();
  t.is(await page.locator('#figure-refused').innerText(), '3\n3 since the start');
  t.deepEqual(
    (await rows(page, 'refused')).map((row) => row.replace(/\s+/g, ' ')),
    ['ERR_HTTP_ORIGIN 2', 'too many connections 1'],
  );
});

inBrowser('stops when it is paused, so that somebody can read', async (t) => {
  const { server, activity } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await waitFor(() => server.responses.every(({ destroyed, writableEnded }) => destroyed || writableEnded));
  runCall(activity, { tool: 'unseen_until_later' });
  t.is(await page.getByText('unseen_until_later').count(), 0);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('#recent').getByText('unseen_until_later').waitFor();
});

inBrowser('connects again by itself', async (t) => {
  const { server, activity } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  server.routes.close();
  await page.locator('#connection').getByText('Connection lost; trying again').waitFor();
  t.regex(await page.locator('#banner').innerText(), /^The bridge has not answered since \d\d:\d\d:\d\d\./);
  t.is(await page.title(), 'No connection – mcp-portage status');
  t.true(Number(await page.evaluate('getComputedStyle(document.getElementById("status")).opacity')) < 0.7);
  runCall(activity, { tool: 'meanwhile' });
  await page.locator('#recent').getByText('meanwhile').waitFor();
  await page.locator('#connection').getByText('Live', { exact: true }).waitFor();
  t.true(await page.locator('#banner').isHidden());
  t.is(await page.title(), '1 failing – mcp-portage status');
});

inBrowser('asks for a token where one is needed, and keeps it out of addresses', async (t) => {
  const { server } = await start(t, { isBusy: true, token: 'opens-only-this' });
  const { page, wrong } = await open(t, server.url);
  const addresses: string[] = [];
  page.on('request', (request) => addresses.push(request.url()));
  await page.getByLabel('Token', { exact: true }).fill('a guess');
  await page.keyboard.press('Enter');
  await page.getByText('This token was not accepted.').waitFor();
  t.is(await page.getByLabel('Token', { exact: true }).inputValue(), '');
  await page.getByLabel('Token', { exact: true }).fill('opens-only-this');
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  t.is((await rows(page, 'servers')).length, 4);
  await page.reload();
  await page.getByText('Live', { exact: true }).waitFor();
  t.true(addresses.every((url) => !url.includes('opens-only-this') && !url.includes('guess')));
  t.deepEqual(wrong, []);
});

inBrowser('copies a snippet, or selects it where the browser does not let it copy', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const origin = { origin: server.url };
  const { page } = await open(t, server.url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], origin);
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  t.is(await page.evaluate('navigator.clipboard.readText()'), await page.locator('#snippet').innerText());
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("not allowed"))');
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByRole('button', { name: 'Selected' }).waitFor();
  t.is(await page.evaluate('getSelection().toString()'), await page.locator('#snippet').innerText());
});

inBrowser('the theme follows the system until one is chosen, which other visits remember', async (t) => {
  const { server } = await start(t, { isBusy: false });
  const { page, wrong } = await open(t, server.url);
  const background = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  const [light, dark] = ['rgb(245, 246, 247)', 'rgb(17, 20, 23)'];
  await page.emulateMedia({ colorScheme: 'light' });
  t.is(await background(), light);
  await page.emulateMedia({ colorScheme: 'dark' });
  t.is(await background(), dark);
  await page.getByLabel('Theme').selectOption('Light');
  t.is(await background(), light);
  await page.reload();
  t.is(await background(), light);
  t.is(await page.getByLabel('Theme').inputValue(), 'light');
  await page.getByLabel('Theme').selectOption('Dark');
  await page.emulateMedia({ colorScheme: 'light' });
  t.is(await background(), dark);
  await page.getByLabel('Theme').selectOption('System theme');
  t.is(await background(), light);
  t.deepEqual(wrong, []);
});

inBrowser('the icon of the page is a picture that its policy allows', async (t) => {
  const { server } = await start(t, { isBusy: false });
  const { page, wrong } = await open(t, server.url);
  const width = await page.evaluate(
    `(async () => {
      const image = new Image();
      image.src = document.querySelector('link[rel=icon]').href;
      await image.decode();
      return image.width;
    })()`,
  );
  t.true(Number(width) > 0);
  t.deepEqual(wrong, []);
});

inBrowser('everything that does something is reached by the keyboard, in the order of the page', async (t) => {
  const { server } = await start(t, { isBusy: true });
  const { page } = await open(t, server.url);
  await page.getByText('Live', { exact: true }).waitFor();
  const reached: unknown[] = [];
  for (let index = 0; index < 40; index += 1) {
    await page.keyboard.press('Tab');
    reached.push(await page.evaluate('document.activeElement.id || document.activeElement.textContent'));
    if (reached.at(-1) === 'status.json') break;
  }
  t.deepEqual(reached, [
    'Skip to the content',
    'theme',
    'pause',
    // The failing server, and its error.
    ...['files', 'Copy'],
    ...['filter-server', 'filter-client', 'filter-tool'],
    // Clients, each with its server.
    ...['claude-code', 'files', 'unnamed', 'weather', 'vscode', 'files', 'Claude Desktop', 'weather'],
    ...['cursor', 'everything'],
    ...['files', 'everything', 'weather', 'notes'],
    ...['chart-calls', 'chart-latency'],
    'only-errors',
    'more-calls',
    'snippet-host',
    'snippet-server',
    'copy',
    'snippet',
    'status.json',
  ]);
});

const heights = (page: Page): Promise<readonly number[]> =>
  page.evaluate('[...document.querySelectorAll("#servers tbody tr")].map((row) => row.getBoundingClientRect().height)');

const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) =>
  [320, 390, 768, 900, 1024, 1440].map((width) => ({ colorScheme, width })),
);

const STATES = [
  { state: 'busy', given: { isBusy: true }, query: '', sign: 'Live' },
  { state: 'about one server', given: { isBusy: true }, query: '?server=files&client=vscode', sign: 'Live' },
  { state: 'idle', given: { isBusy: false }, query: '', sign: 'Live' },
  { state: 'locked', given: { isBusy: true, token: 'needed' }, query: '', sign: 'A token is needed' },
] as const;

for (const { state, given, query, sign } of STATES) {
  inBrowser(`a page that is ${state} has no barriers and fits, light and dark, on a phone and a desk`, async (t) => {
    const { server } = await start(t, given);
    const { page } = await open(t, server.url, query);
    await page.locator('#connection').getByText(sign, { exact: true }).waitFor();
    for (const { colorScheme, width } of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      t.deepEqual(await findBarriers(page), []);
      t.true(Number(await page.evaluate('document.documentElement.scrollWidth')) <= width);
      const tallest = Math.max(0, ...(await heights(page)));
      t.true(tallest < (width < 768 ? 600 : 400), `a row of a server is ${tallest} px tall at ${width} px`);
    }
  });
}
