/** docs/guide/retire-http-sse.md, line by line: each command is run as it stands there, and says what the page says. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import test, { type ExecutionContext } from 'ava';
import { BRIDGE_COMMAND, type Bridge, startBridge } from '../support/bridge.ts';
import { callHttp } from '../support/http-call.ts';
import { installedPrograms } from '../support/installed-programs.ts';
import { connectStreamable } from '../support/sdk-client.ts';
import { waitFor } from '../support/wait-for.ts';

const page = await readFile(new URL('../../docs/guide/retire-http-sse.md', import.meta.url), 'utf8');

interface Step {
  readonly words: readonly string[];
  /** What the page shows below it, line by line, up to the next command. */
  readonly shown: readonly string[];
}

/** The commands of the page, in their order. */
const steps = [...page.matchAll(/```sh\n(.*?)\n```(.*?)(?=```sh|$)/gs)].map(
  ([, command = '', after = '']): Step => ({
    words: command.split(' '),
    shown: [...after.matchAll(/```text\n(.*?)```/gs)].flatMap(([, text = '']) => text.trim().split('\n')),
  }),
);

const PORTAGE = ['npx', '-y', 'mcp-portage'];
const ORIGIN = 'http://127.0.0.1:8000';
/** The page waits for a month. */
const [MONTH, SHORTLY] = ['30d', '6s'];

/** A user at a terminal, with a home folder that has nothing in it yet. */
async function sitDown(t: ExecutionContext) {
  const state = await mkdtemp(join(tmpdir(), 'portage-migrate-'));
  t.teardown(() => rm(state, { recursive: true, force: true }));
  const env = { ...(await installedPrograms(t)), MCP_PORTAGE_STATE_DIR: state };
  let bridge: Bridge | undefined;
  t.teardown(async () => void (await bridge?.stop()));

  const origin = (): string => bridge?.url.origin ?? ORIGIN;
  const run = (args: readonly string[]): Promise<{ readonly code: number; readonly said: string }> => {
    const [node, bin] = BRIDGE_COMMAND;
    const words = args.map((word) => word.replace(ORIGIN, origin()).replace(MONTH, SHORTLY));
    return new Promise((resolve) => {
      execFile(node, [bin, ...words], { env: { ...process.env, ...env } }, (error, stdout) =>
        resolve({ code: Number(error?.code ?? 0), said: stdout.replaceAll(/\s+/g, ' ') }),
      );
    });
  };
  return {
    /** Runs `serve` in place of the one before. */
    async serve([verb, ...args]: readonly string[]): Promise<Bridge> {
      t.is(verb, 'serve');
      await bridge?.stop();
      bridge = await startBridge(args, { env });
      return bridge;
    },
    run,
    /** What `curl -si` prints of a response. */
    async curl(url: string): Promise<string> {
      const { pathname, port } = new URL(url.replace(ORIGIN, origin()));
      const answer = await callHttp({ port: Number(port), path: pathname });
      const { statusCode, statusMessage, rawHeaders } = answer.response;
      const headers = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
      const body = answer.isEventStream ? '' : await answer.text();
      answer.leave();
      return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...headers, body].join('\n').replaceAll(origin(), ORIGIN);
    },
  };
}

/** An editor that is set to the old address comes, works and goes. */
async function workByTheOldTransport(url: URL): Promise<void> {
  const client = new Client({ name: 'cursor', version: '0.42' });
  await client.connect(new SSEClientTransport(url) as Parameters<Client['connect']>[0]);
  await client.listTools();
  await client.close();
}

test('the migration goes as the page says, from probe to --no-sse', async (t) => {
  const [probe, count, ask, snippet, announce, curl, askAgain, switchOff, curlAgain, ...more] = steps.map(
    ({ words, shown }) => {
      const isOurs = words.slice(0, 3).join() === PORTAGE.join();
      return { words: isOurs ? words.slice(3) : words, shown };
    },
  ) as Step[];
  if (curlAgain === undefined || askAgain === undefined || switchOff === undefined) return t.fail('steps are missing');
  if (probe === undefined || count === undefined || ask === undefined || snippet === undefined) return t.fail();
  if (announce === undefined || curl === undefined) return t.fail();
  t.deepEqual(more, []);
  const user = await sitDown(t);
  const says = (said: string, { shown }: Step): void => {
    for (const line of shown) t.true(said.includes(line), `${line} is not in ${said}`);
  };

  const probed = await user.run(probe.words);
  t.is(probed.code, 0);
  says(probed.said, probe);

  const counting = await user.serve(count.words);
  await workByTheOldTransport(counting.sseUrl);
  const asked = await user.run(ask.words);
  t.is(asked.code, 75);
  says(asked.said, ask);
  const pasted = await user.run(snippet.words);
  t.is(pasted.code, 0);
  t.true(pasted.said.includes(`${counting.url.origin}/mcp`));

  const announcing = await user.serve(announce.words);
  const [, , , logged = ''] = curl.shown;
  const heard = await user.curl(curl.words.at(-1) ?? '');
  says(heard, { ...curl, shown: curl.shown.slice(0, 3) });
  await workByTheOldTransport(announcing.sseUrl);
  await waitFor(() => announcing.logs.some(({ msg }) => msg === logged), { message: logged });

  const answered = await waitFor(async () => {
    // That it still serves is noted every ten minutes, and when it starts: the month of this test is shorter than that.
    await user.serve(announce.words);
    const again = await user.run(askAgain.words);
    return again.code === 0 && again;
  });
  says(answered.said, { ...askAgain, shown: askAgain.shown.map((line) => line.replace('30 days', '6 seconds')) });

  const switched = await user.serve(switchOff.words);
  says(await user.curl(curlAgain.words.at(-1) ?? ''), curlAgain);
  const { client, close } = await connectStreamable(switched.url);
  t.true((await client.listTools()).tools.length > 0);
  await close();
});
