/** The banner for a user who starts a bridge in a terminal: its servers, their addresses, and the next step. */
import type { Logger } from 'pino';
import type { HttpListenerConfig } from '../config/listener.ts';
import { AGGREGATE_NAME } from '../config/server.ts';
import { shortCommandName } from '../process/command-name.ts';
import { nameForHosts, renderSnippet, type ServedFile } from '../snippet.ts';
import { VERSION } from '../version.ts';
import type { RunningBridge } from './lifecycle.ts';

interface Served extends Pick<HttpListenerConfig, 'access'> {
  readonly file: ServedFile;
}

type Announced = Pick<RunningBridge, 'urls' | 'servers' | 'statusUrl'>;

/** A longer list would not be read. */
const MAX_SHOWN = 25;
const EVERY_ADDRESS = /\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/;

/** Logs the banner; the log prints its lines unchanged. */
export function showBanner(bridge: Announced, served: Served, log: Logger): void {
  const [title, ...lines] = renderBanner(bridge, served);
  log.info({ banner: 'title' }, title);
  for (const line of lines) log.info({ banner: 'line' }, line);
}

/** Returns the lines of the banner, the first of which is its title. */
export function renderBanner({ urls, servers, statusUrl }: Announced, { access, file }: Served): readonly string[] {
  const names = servers.map(({ name }) => name);
  const shownNames = names.length > MAX_SHOWN ? `${names.length} servers` : names.join(', ');
  const status = statusUrl === undefined ? [] : [{ label: 'Status', url: statusUrl }];
  const addresses = [...urls.slice(0, MAX_SHOWN), ...status];
  const width = Math.max(0, ...addresses.map(({ label }) => label.length));
  const more = urls.length > MAX_SHOWN ? [`  and ${urls.length - MAX_SHOWN} more addresses; GET / lists them`] : [];
  const isEverywhere = addresses.some(({ url }) => EVERY_ADDRESS.test(url));
  return [
    `mcp-portage ${VERSION} serves ${shownNames}`,
    '',
    ...addresses.map(({ label, url }) => `  ${label.padEnd(width)}  ${reachable(url)}`),
    ...more,
    ...(isEverywhere ? ['  … and by every other address of this machine'] : []),
    '',
    ...nextStep(servers, access, file),
    '',
  ];
}

/** Returns a command to paste that adds the first server to Claude Code. */
function nextStep(
  servers: Announced['servers'],
  { auth }: HttpListenerConfig['access'],
  file: ServedFile,
): readonly string[] {
  const [first] = servers;
  if (first === undefined) return [];
  const [name = ''] = nameForHosts([servers.length === 1 ? shortNameOf(first.name) : first.name]);
  const token = auth !== undefined && auth.oauth === undefined ? 'needed' : 'none';
  const server = { name, url: reachable(first.url), transport: 'streamable-http', token } as const;
  const [command = ''] = renderSnippet('claude-code', [server], file).instead;
  // The aggregate is all servers at one address.
  const isForEach = servers.length > 1 && first.name !== AGGREGATE_NAME;
  const others = isForEach ? ', and so on for the others' : '';
  return [`  To use it in Claude Code${others} (mcp-portage snippet has other hosts):`, `  ${command}`];
}

/** A single server without a name is called by its command or its URL; returns a short name for it. */
function shortNameOf(name: string): string {
  return URL.canParse(name) && name.includes('://') ? new URL(name).hostname : shortCommandName(name);
}

/** Replaces a wildcard address, which clients cannot connect to, with loopback. */
function reachable(url: string): string {
  return url.replace(EVERY_ADDRESS, '//127.0.0.1');
}
