/** The built bridge, serving a published server to one host, and the clients that its log names. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitFor } from '../../test/support/wait-for.ts';
import { clientsInLog } from './read-output.ts';
import type { SeenClient } from './results.ts';

export const BRIDGE = fileURLToPath(new URL('../../bin/mcp-portage.js', import.meta.url));
const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));

/** A host that has ended was logged before; this is how long the line may be on its way. */
const LOG_LIMIT_MS = 3000;
const CLOSE_LIMIT_MS = 20_000;

export interface ServedBridge {
  readonly urls: { readonly 'streamable-http': string; readonly 'http-sse': string };
  /** The client that came, as soon as the log names it; undefined where nobody comes. */
  client(): Promise<SeenClient | undefined>;
  close(): Promise<void>;
}

/** @param access options that say who may call */
export async function serveEverything(env: NodeJS.ProcessEnv, access: readonly string[]): Promise<ServedBridge> {
  // At `debug` every call names its client; at `info` one in so many is looked at.
  const options = [...access, '--port', '0', '--log-format', 'json', '--log-level', 'debug'];
  const args = [BRIDGE, 'serve', ...options, '--', process.execPath, EVERYTHING];
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const urlOf = (label: string) => new RegExp(`"label":"${label}","url":"([^"]+)"`).exec(log)?.[1];
  await waitFor(() => urlOf('HTTP\\+SSE') !== undefined || child.exitCode !== null, {
    message: 'the bridge to listen',
  });
  const [streamable, sse] = [urlOf('Streamable HTTP'), urlOf('HTTP\\+SSE')];
  if (streamable === undefined || sse === undefined) throw new Error(`the bridge does not listen: ${log}`);
  return {
    urls: { 'streamable-http': streamable, 'http-sse': sse },
    async client() {
      await waitFor(() => clientsInLog(log).length > 0, { timeoutMs: LOG_LIMIT_MS }).catch(() => undefined);
      return clientsInLog(log)[0];
    },
    async close() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_LIMIT_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}
