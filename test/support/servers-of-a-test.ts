/** HTTP servers that are closed with their test. */
import type { ExecutionContext } from 'ava';
import { type Ask, type Reply, type ScriptedServer, serveReplies } from '../fixtures/http-servers/replies.ts';
import { type SdkKind, type SdkServer, serveSdk } from '../fixtures/http-servers/sdk.ts';

export async function serve(t: ExecutionContext, kind: SdkKind): Promise<SdkServer> {
  const server = await serveSdk(kind);
  t.teardown(() => server.close());
  return server;
}

export async function scripted(t: ExecutionContext, script: (ask: Ask) => Reply | undefined): Promise<ScriptedServer> {
  const server = await serveReplies(script);
  t.teardown(() => server.close());
  return server;
}
