import type { RemoteConfig, Target } from '../config.ts';
import { showUrl } from '../http/shown-url.ts';
import { toPrintable } from '../printable.ts';
import { nameCommand } from '../process/command-name.ts';

/** How the target is called at the top of the report. */
export function nameTarget(target: Target): string {
  return target.kind === 'url' ? showUrl(target.url) : nameCommand(target.command, target.args);
}

/** As it would be typed behind `mcp-portage serve`, credentials left out: the report may end up in a log. */
export function showTarget(target: Target, remote: RemoteConfig): string {
  if (target.kind === 'url') {
    const url = `${showUrl(target.url)}${target.url.search === '' ? '' : '?…'}`;
    return [url, ...remoteOptions(remote)].map(quote).join(' ');
  }
  return ['--', target.command, ...maskArguments(target.args)].map(quote).join(' ');
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

const SECRET_NAME = /key|token|secret|passw|credential|auth/i;
const MAX_WORD_LENGTH = 200;

function maskArguments(args: readonly string[]): readonly string[] {
  return args.map((arg, index) => {
    const before = args[index - 1];
    const isValue = before?.startsWith('-') === true && !before.includes('=') && !arg.startsWith('-');
    if (isValue && SECRET_NAME.test(before)) return '…';
    const [name = '', value] = arg.split(/=(.*)/s);
    if (value !== undefined && SECRET_NAME.test(name)) return `${name}=…`;
    return arg.replace(/\/\/[^/@\s]*@/g, '//…@');
  });
}

function quote(word: string): string {
  const text = toPrintable(word, MAX_WORD_LENGTH);
  return /^[\w@%+=:,./…-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
