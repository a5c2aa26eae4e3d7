/** The messages on the status page, in a real browser and with the real feed. */
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import type { Browser, Page } from 'playwright-core';
import { Activity } from '../../../src/observe/status/activity.ts';
import { createStatus } from '../../../src/observe/status/create-status.ts';
import { MessageFeed } from '../../../src/recording/message-feed.ts';
import { RecordedLines } from '../../observe/view/recorded-lines.ts';
import { waitFor } from '../../support/wait-for.ts';
import { findBarriers, findChromium, launchChromium } from './chromium.ts';
import { client, inspectedServer, inspection, LEGACY_STDIO, NO_REFUSALS, START_MS, WallClock } from './seen.ts';
import { REAL_CLOCK, startStatusServer } from './status-server.ts';

const chromiumPath = findChromium();
const test = anyTest as TestFn<{ readonly browser: Browser }>;
/** One after the other: a browser keeps a machine busy. */
const inBrowser = chromiumPath === undefined ? test.serial.skip : test.serial;
if (chromiumPath !== undefined) {
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

interface World {
  readonly token?: string;
  readonly inspects?: 'off';
  readonly clients?: readonly string[];
}

async function start(t: ExecutionContext, { token, inspects, clients = [] }: World = {}) {
  const clock = new WallClock();
  const activity = new Activity({ wallClock: clock.now });
  for (const name of clients) activity.connected(client({ name }), LEGACY_STDIO);
  const status = createStatus({
    inspect: () => inspection({ servers: [inspectedServer(), inspectedServer({ name: 'weather' })] }),
    isInspecting: inspects !== 'off',
    activity,
    refusals: NO_REFUSALS,
    usage: undefined,
    hosts: [],
    snippets: () => undefined,
  });
  const feed = new MessageFeed({ format: { maxMessageBytes: 65_536, secrets: 'hidden' }, clock: REAL_CLOCK });
  t.teardown(() => feed.close());
  const server = await startStatusServer(status, REAL_CLOCK, {
    token,
    ...(inspects !== 'off' && { feed: (response) => feed.read(response) }),
  });
  t.teardown(() => server.close());
  return { feed, server };
}

async function open(t: Context, url: string, query = '') {
  const context = await t.context.browser.newContext({ viewport: { width: 1440, height: 900 } });
  t.teardown(() => context.close());
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(message.text());
  });
  await page.clock.setFixedTime(START_MS);
  await page.goto(`${url}/status${query}`);
  return { page, wrong };
}

const summaries = (page: Page): Promise<readonly string[]> => page.locator('#messages summary').allInnerTexts();

async function showsRows(page: Page, count: number): Promise<readonly string[]> {
  await waitFor(async () => (await summaries(page)).length === count, {
    message: `${count} rows on the page`,
    timeoutMs: 15_000,
  });
  return (await summaries(page)).map((row) => row.replace(/\s+/g, ' '));
}

/** Sends what was recorded since the last time. */
function send(feed: MessageFeed, recorded: RecordedLines): void {
  feed.take(recorded.lines.splice(0));
}

const OK = { result: {} };

test('a page without messages has nothing of them', async (t) => {
  const { server } = await start(t, { inspects: 'off' });
  for (const file of ['status', 'status.css', 'status.js']) {
    const text = await (await fetch(`${server.url}/${file}`)).text();
    t.notRegex(text, /messages-|status\/messages|<!--|twins/, file);
  }
  t.is((await fetch(`${server.url}/status/messages`)).status, 404);
});

inBrowser('calls appear as they come, the latest first, and say how they end', async (t) => {
  const { feed, server } = await start(t);
  const recorded = new RecordedLines().request(1, 'tools/list').answer(1, OK);
  send(feed, recorded.request(2, 'tools/call', { name: 'echo' }));
  const { page, wrong } = await open(t, server.url);
  const rows = await showsRows(page, 2);
  t.regex(rows[0] ?? '', /\d\d:\d\d:\d\d echo · tools\/call claude-code everything ◌ open/);
  t.regex(rows[1] ?? '', /tools\/list claude-code everything ● answered 3 ms 36 B/);
  send(feed, recorded.answer(2, { result: { isError: true } }));
  await page.locator('#messages').getByText('▲ tool failed').waitFor();
  recorded.request(3, 'tools/call', { name: 'wrong' }).answer(3, { error: { code: -32602 } });
  recorded.request(4, 'slow').add('client', 'in', { method: 'notifications/cancelled' }, { call: 4 });
  recorded.add('server', 'in', { method: 'notifications/tools/list_changed' });
  recorded.add('server', 'out', { id: 1, method: 'ping' }).add('server', 'in', { id: 1, ...OK });
  send(feed, recorded);
  const more = await showsRows(page, 6);
  for (const [row, expected] of [
    [0, /ping .*answered/],
    [1, /list_changed .*notification/],
    [2, /slow .*canceled/],
    [3, /wrong · tools\/call .*▲ error -32602/],
  ] as const)
    t.regex(more[row] ?? '', expected);
  t.regex(await page.locator('footer').innerText(), /started with --inspect/);
  t.deepEqual(wrong, []);
});

inBrowser('a call shows its messages beside their twins at the other side of the bridge', async (t) => {
  const { feed, server } = await start(t);
  const recorded = new RecordedLines()
    .request(1, 'tools/call', { name: 'ask', arguments: {} })
    .add('server', 'in', { id: 0, method: 'sampling/createMessage' }, { call: 1 })
    .add('client', 'out', { id: 'q1', method: 'sampling/createMessage' }, { call: 1 })
    .add('client', 'in', { id: 'q1', ...OK }, { call: 1 })
    .add('server', 'out', { id: 0, ...OK }, { call: 1 })
    .add('server', 'in', { method: 'notifications/progress' }, { call: 1 })
    .answer(1, { result: { n: 0 } }, { hidden: 2, cut: true });
  recorded.lines.push(...recorded.lines.splice(0).map((line) => line.replace('"n":0', '"n":12345678901234567890')));
  send(feed, recorded);
  const { page } = await open(t, server.url);
  await showsRows(page, 1);
  // By the keyboard alone.
  await page.locator('#messages summary').focus();
  await page.keyboard.press('Enter');
  const figures = await page.locator('#messages figure').evaluateAll((found) =>
    found.map((figure) => {
      const { left, top } = figure.getBoundingClientRect();
      return { left, top: Math.round(top), text: figure.textContent ?? '' };
    }),
  );
  t.is(figures.length, 9);
  const ways = figures.map(({ text }) => /^(\w+ → \w+)/.exec(text)?.[1]);
  t.deepEqual(ways.slice(0, 4), ['client → bridge', 'bridge → server', 'bridge → client', 'server → bridge']);
  t.is(figures[0]?.top, figures[1]?.top);
  t.true((figures[0]?.left ?? 0) < (figures[1]?.left ?? 0));
  const [ofClient, ofServer] = figures.slice(-2);
  t.is(ofClient?.top, ofServer?.top);
  t.regex(ofClient?.text ?? '', /bridge → client .*Streamable HTTP · modern era.* 2 values hidden · cut/);
  t.true(ofServer?.text.includes('"n": 12345678901234567890\n'));
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('#messages figure').first().getByRole('button').click();
  const copied = await page.evaluate('navigator.clipboard.readText()');
  t.like(JSON.parse(String(copied)), { id: 1, method: 'tools/call' });
  // The messages of an open call grow where they are shown.
  send(feed, recorded.add('server', 'in', { id: 'late', error: {} }, { call: 1 }));
  await waitFor(async () => (await page.locator('#messages figure').count()) === 10);
});

inBrowser('filters choose what is shown, by server, client, text and outcome', async (t) => {
  const { feed, server } = await start(t, { clients: ['claude-code', 'cursor'] });
  const ofCursor = { client: 'cursor', server: 'weather' };
  const recorded = new RecordedLines()
    .request(1, 'tools/call', { name: 'Echo' })
    .answer(1, OK)
    .request(2, 'tools/call', { name: 'forecast' }, ofCursor)
    .answer(2, { error: { code: 1 } }, ofCursor)
    .request(3, 'prompts/list')
    .answer(3, OK);
  send(feed, recorded);
  const { page } = await open(t, server.url);
  await showsRows(page, 3);
  await page.locator('#messages-text').fill('tools/');
  await showsRows(page, 2);
  await page.locator('#messages-text').fill('ECHO');
  await showsRows(page, 1);
  await page.locator('#messages-text').fill('');
  await page.locator('#messages-wrong').check();
  t.regex((await showsRows(page, 1))[0] ?? '', /forecast/);
  await page.locator('#messages-wrong').uncheck();
  await page.locator('#filter-server').selectOption('weather');
  await showsRows(page, 1);
  await page.locator('#filter-server').selectOption('');
  await page.locator('#filter-client').selectOption('cursor');
  await showsRows(page, 1);
  await page.locator('#messages-text').fill('nothing like this');
  await page.getByText('No message matches the filter.').waitFor();
});

inBrowser('while messages are paused nothing moves, and what waits is counted up to a limit', async (t) => {
  const { feed, server } = await start(t);
  const recorded = new RecordedLines().request(1, 'first').answer(1, OK);
  send(feed, recorded);
  const { page } = await open(t, server.url);
  await showsRows(page, 1);
  await page.getByRole('button', { name: 'Pause messages' }).click();
  send(feed, recorded.request(2, 'second').answer(2, OK));
  await page.getByRole('button', { name: 'Resume (4 new)' }).waitFor();
  t.is((await summaries(page)).length, 1);
  for (let call = 3; call < 203; call += 1) recorded.request(call, 'many').answer(call, OK);
  send(feed, recorded);
  const resume = page.getByRole('button', { name: 'Resume (500+ new)' });
  await resume.waitFor();
  await resume.focus();
  await page.keyboard.press('Space');
  await waitFor(async () => (await summaries(page)).length > 100);
  await page.getByRole('button', { name: 'Pause messages' }).waitFor();
  await page.getByText(/304 messages came faster/).waitFor();
});

inBrowser('the number of rows is limited, and so is what one call keeps', async (t) => {
  const { feed, server } = await start(t);
  const recorded = new RecordedLines();
  const { page, wrong } = await open(t, server.url);
  await page.getByText('No messages yet.').waitFor();
  for (let call = 1; call <= 300; call += 1) {
    send(feed, recorded.request(call, 'tools/list').answer(call, OK));
  }
  await showsRows(page, 200);
  recorded.request(301, 'chatty');
  for (let count = 0; count < 200; count += 1) {
    recorded.add(
      'client',
      'out',
      { method: 'notifications/progress', params: { text: 'x'.repeat(400) } },
      { call: 301 },
    );
  }
  send(feed, recorded.answer(301, OK));
  await page.locator('#messages').getByText('chatty').click();
  await page.getByText(/\d+ more messages of this call are not kept\./).waitFor();
  t.regex((await summaries(page))[0] ?? '', /chatty[\s\S]*answered/);
  t.deepEqual(wrong, []);
});

inBrowser('after the feed breaks it is followed again, and no message is shown twice', async (t) => {
  const { feed, server } = await start(t);
  const recorded = new RecordedLines().request(1, 'first').answer(1, OK);
  send(feed, recorded);
  const { page } = await open(t, server.url);
  await showsRows(page, 1);
  feed.close();
  await waitFor(() => feed.readers === 1);
  send(feed, recorded.request(2, 'second').answer(2, OK));
  await showsRows(page, 2);
  const restarted = new RecordedLines();
  restarted.nowMs = recorded.nowMs + 1000;
  send(feed, restarted.request(1, 'of another run').answer(1, OK));
  const rows = await showsRows(page, 3);
  t.deepEqual(
    rows.map((row) => /of another run|second|first/.exec(row)?.[0]),
    ['of another run', 'second', 'first'],
  );
});

inBrowser('the feed needs the token of the page', async (t) => {
  const { feed, server } = await start(t, { token: 'secret' });
  send(feed, new RecordedLines().request(1, 'tools/list').answer(1, OK));
  const { page, wrong } = await open(t, server.url);
  await page.locator('#token-value').fill('secret');
  await page.keyboard.press('Enter');
  await showsRows(page, 1);
  t.deepEqual(wrong, []);
});

const TOO_WIDE = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
  .filter((element) => element.getBoundingClientRect().right > innerWidth && element.closest('.unseen') === null)
  .map((element) => element.tagName + '#' + element.id + '.' + element.className)`;

const MARKUP = '"><img src=x onerror="document.title=1"></script><script>document.title=2</script>';
const HOSTILE = [
  MARKUP,
  'x'.repeat(100_000),
  '\u05d0\u05d1 \u202e\u2066\u0627\u0644',
  '\u{1f4a3}'.repeat(60),
  '\u001b[2J\u0007\u0000\u200b',
];

for (const scheme of ['light', 'dark'] as const) {
  inBrowser(`hostile names and payloads run nothing and fit at every width, in the ${scheme} theme`, async (t) => {
    const { feed, server } = await start(t);
    const recorded = new RecordedLines();
    HOSTILE.forEach((text, index) => {
      const facts = { server: text, client: text, carrier: text, session: text };
      const payload = { name: text, arguments: { [text]: text, __proto__: { text }, deep: [[[[text]]]] } };
      recorded
        .request(index + 1, 'tools/call', payload, facts)
        .answer(index + 1, { error: { code: 1, message: text } }, facts);
      recorded.add('server', 'in', { method: text, params: text }, facts);
    });
    recorded.add('client', 'in', { id: 77, method: 'deep', params: JSON.parse('['.repeat(2000) + ']'.repeat(2000)) });
    send(feed, recorded);
    const { page, wrong } = await open(t, server.url);
    await page.emulateMedia({ colorScheme: scheme });
    await showsRows(page, 11);
    for (const summary of await page.locator('#messages summary').all()) await summary.click();
    for (const width of [320, 390, 600, 900, 1200, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      t.deepEqual(await page.evaluate(TOO_WIDE), [], `${width} px`);
    }
    t.deepEqual(await findBarriers(page), []);
    await page.setViewportSize({ width: 390, height: 800 });
    t.deepEqual(await findBarriers(page), []);
    t.is(await page.locator('main img, main script').count(), 0);
    const text = (await page.locator('main').textContent()) ?? '';
    t.true(['\u001b', '\u0007', '\u202e', '\u2066', '\u200b'].every((character) => !text.includes(character)));
    t.deepEqual(wrong, []);
  });
}
