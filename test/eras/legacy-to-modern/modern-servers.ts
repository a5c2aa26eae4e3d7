import type { ExecutionContext } from 'ava';
import { createLegacyToModernDialer } from '../../../src/eras/legacy-to-modern/dialer.ts';
import type { SessionDialer } from '../../../src/relay/ports.ts';
import {
  answerResult,
  listenScripted,
  type Script,
  type ScriptedServer,
} from '../../fixtures/http-servers/scripted.ts';
import { serveModern } from '../../fixtures/modern-server/http.ts';
import { createTestDeps } from '../../process/collected-log.ts';
import { dialScript } from '../../support/dialers.ts';
import type { FakeClock } from '../../support/fake-clock.ts';
import { type HttpHarness, type HttpHarnessOptions, startHttpHarness } from '../../support/http-harness.ts';
import { serverProgram } from '../../support/server-program.ts';
import { dialStateless } from '../../upstream/remote-dialers.ts';
import { DISCOVERY } from './legacy-session.ts';

const SERVER = serverProgram(new URL('../../fixtures/modern-server/stdio.js', import.meta.url));

/** The server made with the official SDK v2, a process for each connection. */
export function dialModernStdio(): SessionDialer {
  const { deps } = createTestDeps();
  return dialScript(SERVER, { deps });
}

/** The same over HTTP. */
export async function dialModernHttp(t: ExecutionContext, clock?: FakeClock): Promise<SessionDialer> {
  const server = await serveModern();
  t.teardown(() => server.close());
  return dialStateless(server.url, clock && { clock });
}

/** As legacy clients see the server behind `dialer`. */
export function translate(t: ExecutionContext, dialer: SessionDialer, clock?: FakeClock): SessionDialer {
  const { deps } = createTestDeps();
  const upstream = createLegacyToModernDialer({
    dialer,
    deps: clock === undefined ? deps : { ...deps, clock },
    clientInfoFallback: { name: 'bridge', version: '0' },
  });
  t.teardown(() => upstream.close());
  return upstream;
}

/** A listener for legacy clients, whose server is `dialer`'s. */
export function startTranslatedHarness(
  t: ExecutionContext,
  dial: (clock: FakeClock) => SessionDialer,
  options: HttpHarnessOptions = {},
): Promise<HttpHarness> {
  return startHttpHarness(t, { ...options, dialer: (clock) => translate(t, dial(clock), clock) });
}

export interface ScriptedHarness {
  readonly server: ScriptedServer;
  readonly harness: HttpHarness;
}

/** The same where a modern server over HTTP does as the script says. */
export async function startScriptedHarness(t: ExecutionContext, script: Script): Promise<ScriptedHarness> {
  const server = await listenScripted({
    'server/discover': (asked, response) => answerResult(asked, response, DISCOVERY),
    ...script,
  });
  const harness = await startTranslatedHarness(t, (clock) => dialStateless(server.url, { clock }));
  t.teardown(() => server.close());
  return { server, harness };
}
