import type { RemoteConfig, Target } from '../config.ts';
import { showUrl } from '../http/shown-url.ts';
import { nameCommand } from '../process/command-name.ts';
import { quoteForShell, showArguments } from '../process/shown-arguments.ts';

/** How the target is called at the top of the report. */
export function nameTarget(target: Target): string {
  return target.kind === 'url' ? showUrl(target.url) : nameCommand(target.command, target.args);
}

/** As it would be typed behind `mcp-portage serve`, credentials left out: the report may end up in a log. */
export function showTarget(target: Target, remote: RemoteConfig): string {
  if (target.kind === 'url') {
    const url = `${showUrl(target.url)}${target.url.search === '' ? '' : '?…'}`;
    return [url, ...remoteOptions(remote)].map(quoteForShell).join(' ');
  }
  return `-- ${showArguments([target.command, ...target.args])}`;
}

/** What was needed to reach the server is needed again. */
function remoteOptions({ headers, bearerTokenFile, tls }: RemoteConfig): readonly string[] {
  const files = {
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
