import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { createModernToLegacyDialer } from '../../../src/eras/modern-to-legacy/dialer.ts';
import type { CallDialer, SessionDialer } from '../../../src/relay/ports.ts';
import { SharedModernServer } from '../../../src/relay/shared/modern/modern-era.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { dialScript } from '../../support/dialers.ts';
import { startHttpHarness } from '../../support/http-harness.ts';
import { META, modern, postModern, type RpcBody } from './modern-posts.ts';

const { deps } = createTestDeps();

function dialProgram(program: string, ...args: readonly string[]): SessionDialer {
  const path = fileURLToPath(new URL(`../../fixtures/${program}`, import.meta.url));
  return dialScript(path, { deps, args });
}

/** Servers made with the official SDKs that have the same tool, resource and prompt. */
const SERVERS: Readonly<Record<string, (t: ExecutionContext) => CallDialer | SessionDialer>> = {
  'a modern server': () =>
    new SharedModernServer({ dialer: dialProgram('modern-server/every-method.js'), deps, prewarm: false }),
  'a legacy server': () =>
    createModernToLegacyDialer({
      dialer: dialProgram('everything/server.js', '--stdio'),
      deps,
      handshakeTimeoutMs: 0,
      sharing: 'by-name',
      clientInfo: { name: 'bridge', version: '0' },
    }),
};

const REF = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
const METHODS = [
  ['server/discover', {}, 'cacheable'],
  ['tools/list', {}, 'cacheable'],
  ['prompts/list', {}, 'cacheable'],
  ['resources/list', {}, 'cacheable'],
  ['resources/templates/list', {}, 'cacheable'],
  ['resources/read', { uri: 'test://static-text' }, 'cacheable'],
  ['tools/call', { name: 'test_simple_text', arguments: {} }, 'not cacheable'],
  ['prompts/get', { name: REF.name, arguments: { arg1: 'a', arg2: 'b' } }, 'not cacheable'],
  ['completion/complete', { ref: REF, argument: { name: 'arg1', value: 'par' } }, 'not cacheable'],
] as const;

for (const [name, createDialer] of Object.entries(SERVERS)) {
  test(`${name}: every result says that it is complete and whose, the six cacheable ones for how long`, async (t) => {
    const dialer = createDialer(t);
    t.teardown(() => dialer.close());
    const harness = await startHttpHarness(t, { modernDialer: dialer });
    for (const [method, params, kind] of METHODS) {
      const answer = await postModern(harness, modern(1, method, params));
      t.is(answer.status, 200, method);
      const { result } = await answer.json<RpcBody>();
      t.is(result?.resultType, 'complete', method);
      t.is(typeof result?._meta?.[`${META}serverInfo`]?.name, 'string', method);
      const hints = [typeof result?.ttlMs, typeof result?.cacheScope];
      t.deepEqual(hints, kind === 'cacheable' ? ['number', 'string'] : ['undefined', 'undefined'], method);
    }
  });

  test(`${name}: a method that it does not know is 404 and -32601, an unknown tool 200 and -32602`, async (t) => {
    const dialer = createDialer(t);
    t.teardown(() => dialer.close());
    const harness = await startHttpHarness(t, { modernDialer: dialer });
    const unknown = await postModern(harness, modern(1, 'vendor/unknown'));
    t.is(unknown.status, 404);
    t.like(await unknown.json<RpcBody>(), { id: 1, error: { code: -32601 } });
    const tool = await postModern(harness, modern(2, 'tools/call', { name: 'no-such-tool', arguments: {} }));
    t.is(tool.status, 200);
    t.like(await tool.json<RpcBody>(), { id: 2, error: { code: -32602 } });
  });
}
