import type { PasswordSource, RemoteConfig } from '../config/remote.ts';
import type { Target } from '../config/server.ts';
import { showUrl } from '../http/shown-url.ts';
import { showGrpcAddress, showStreamAddress } from '../http/socket-addresses.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';
import { showServer } from '../mqtt/show-address.ts';
import { quoteForShell, quoteWord, showArguments } from '../process/shown-arguments.ts';
import type { ClientAdvice, ClientKind, Offer, OfferTransport } from './report.ts';

interface ClientTraits {
  readonly client: ClientKind;
  readonly transport: OfferTransport;
  readonly era: Era;
  /** The command of mcp-portage that serves the transport this client needs. */
  readonly verb: 'serve' | 'connect';
}

/** The kinds of clients, in the order of the report's table. */
const CLIENTS: readonly ClientTraits[] = [
  { client: 'stdio-legacy', transport: 'stdio', era: 'legacy', verb: 'connect' },
  { client: 'http-sse', transport: 'http-sse', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-legacy', transport: 'streamable-http', era: 'legacy', verb: 'serve' },
  { client: 'streamable-http-modern', transport: 'streamable-http', era: 'modern', verb: 'serve' },
  { client: 'stdio-modern', transport: 'stdio', era: 'modern', verb: 'connect' },
];

/**
 * Tells for each kind of client how to use the server. With mcp-portage any of them can use any transport that works.
 *
 * @param shownTarget the target as written on a command line
 * @param reached `through-portage` for the aggregate, which no client can use without mcp-portage
 */
export function adviseClients(
  offers: readonly Offer[],
  shownTarget: string,
  reached: 'as-it-is' | 'through-portage' = 'as-it-is',
): readonly ClientAdvice[] {
  const working = offers.filter((offer) => offer.works);
  return CLIENTS.map(({ client, transport, era, verb }): ClientAdvice => {
    if (working.length === 0) return { client, way: 'none', command: undefined };
    const isDirect =
      reached === 'as-it-is' && working.some((offer) => offer.transport === transport && offer.era === era);
    return isDirect
      ? { client, way: 'direct', command: undefined }
      : { client, way: 'portage', command: `mcp-portage ${verb} ${shownTarget}` };
  });
}

/** The arguments for `mcp-portage serve`, without credentials, because the report may end up in a log. */
export function showTarget(target: Target, remote: RemoteConfig): string {
  if (target.kind === 'url') {
    const url = `${showUrl(target.url)}${target.url.search === '' ? '' : '?…'}`;
    return [url, ...remoteOptions(remote)].map(quoteForShell).join(' ');
  }
  if (target.kind === 'stream') {
    return [showStreamAddress(target.address), ...remoteOptions(remote)].map(quoteForShell).join(' ');
  }
  if (target.kind === 'replay') {
    const { file, server } = target;
    return quoteForShell(`replay:${file}${server === undefined ? '' : `#${server}`}`);
  }
  if (target.kind === 'grpc') {
    return [showGrpcAddress(target), ...remoteOptions(remote)].map(quoteForShell).join(' ');
  }
  if (target.kind === 'mqtt') {
    const { address, serverName } = target;
    return [showServer(address, serverName), ...remoteOptions(remote)].map(quoteForShell).join(' ');
  }
  return `-- ${showArguments([target.command, ...target.args])}`;
}

/** The arguments for a server of a configuration file; without a name, for all of them as one. */
export function showListed(file: string, name?: string): string {
  return ['--config', file, ...(name === undefined ? [] : [name])].map(quoteWord).join(' ');
}

/** The options that were needed to reach the server. */
function remoteOptions({ headers, bearerTokenFile, tls, account }: RemoteConfig): readonly string[] {
  const files = {
    '--user': account.user,
    '--password': showPassword(account.password),
    '--bearer-token-file': bearerTokenFile,
    '--ca': tls.caFile,
    '--client-cert': tls.certFile,
    '--client-key': tls.keyFile,
  };
  return [
    ...[...headers.keys()].flatMap((name) => ['--header', `${name}: …`]),
    ...Object.entries(files).flatMap(([option, file]) => (file === undefined ? [] : [option, file])),
  ];
}

/** The place of the password, never the password. */
function showPassword(password: PasswordSource | undefined): string | undefined {
  if (password === undefined) return undefined;
  return password.kind === 'file' ? `file:${password.file}` : 'env:…';
}
