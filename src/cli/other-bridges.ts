/** Translates a command line of another bridge: supergateway, two programs called mcp-proxy, and mcp-remote. */
import { toKebabCase } from './mistakes.ts';
import { findFlag } from './options/option-table.ts';
import { isUrlLike } from './parse/servers/target.ts';

/** Arguments of mcp-portage before `--`, and the command behind it. */
export interface TranslatedLine {
  readonly head: readonly string[];
  readonly command: readonly string[] | undefined;
}

/** The translation of an option: if it has a value, and the arguments that replace it. Without them it is left out. */
type Translation =
  | { readonly value: 'none' | 'one'; readonly here: 'left out' }
  | { readonly value: 'none'; readonly here: readonly string[] }
  | { readonly value: 'one'; readonly here: (value: string) => readonly string[] };

const WITHOUT_VALUE: Translation = { value: 'none', here: 'left out' };
const WITH_VALUE: Translation = { value: 'one', here: 'left out' };

function renamed(flag: string): Translation {
  return { value: 'one', here: (value) => [flag, value] };
}

function replaced(...here: readonly string[]): Translation {
  return { value: 'none', here };
}

const TRANSLATIONS: ReadonlyMap<string, Translation> = new Map<string, Translation>(
  Object.entries({
    'allow-http': WITHOUT_VALUE,
    'api-key': { value: 'one', here: () => ['--auth-token', 'env:NAME'] },
    cors: replaced('--allow-origin', 'https://app.example.com'),
    debug: replaced('--log-level', 'debug'),
    'enable-proxy': WITHOUT_VALUE,
    endpoint: renamed('--path'),
    'health-endpoint': WITH_VALUE,
    'ignore-tool': renamed('--exclude-tool'),
    'max-body-size': renamed('--max-message-bytes'),
    'oauth2-bearer': { value: 'one', here: () => ['--bearer-token-file', 'FILE'] },
    'output-transport': WITH_VALUE,
    'pass-environment': replaced('--inherit-env'),
    'protocol-version': WITH_VALUE,
    server: WITH_VALUE,
    shell: WITHOUT_VALUE,
    'sse-endpoint': renamed('--sse-path'),
    'sse-host': renamed('--host'),
    'sse-port': renamed('--port'),
    stateful: WITHOUT_VALUE,
    stateless: WITHOUT_VALUE,
    'stream-endpoint': renamed('--path'),
    'streamable-http-path': renamed('--path'),
    verbose: replaced('--log-level', 'debug'),
  } satisfies Record<string, Translation>),
);

/** Options with the URL of a server, which a stdio client is connected to. */
const OF_REMOTE: readonly string[] = ['sse', 'streamable-http'];

/** Characters that mean something to a shell, which other bridges start the command with. */
const OF_SHELL = /["'\\$`|&;<>()*?~]/;

/** Returns undefined if an option or a word is not known from another bridge. */
export function translate(head: readonly string[], command: readonly string[] | undefined): TranslatedLine | undefined {
  const options: string[] = [];
  const words: string[] = [];
  let target = command;
  let index = 0;
  while (index < head.length) {
    const word = head[index] ?? '';
    index += 1;
    if (!word.startsWith('-')) {
      words.push(word);
      continue;
    }
    const [, name = '', , inline] = /^--([\w-]+)(=(.*))?$/s.exec(word) ?? [];
    const kebab = toKebabCase(name);
    const next = inline ?? head[index] ?? '';
    const takeNext = (): string => {
      if (inline === undefined) index += 1;
      return next;
    };
    const translation = TRANSLATIONS.get(kebab);
    const own = findFlag(`--${kebab}`);
    if (OF_REMOTE.includes(kebab) && isUrlLike(next)) words.unshift('connect', takeNext());
    else if (kebab === 'stdio') target = splitCommand(takeNext());
    else if (translation !== undefined) {
      const value = translation.value === 'one' ? takeNext() : '';
      if (translation.here !== 'left out')
        options.push(...(typeof translation.here === 'function' ? translation.here(value) : translation.here));
    } else if (own === undefined) return undefined;
    else if (own.bare !== undefined) options.push(word);
    else if (own.kind === 'flag') options.push(own.flag);
    else options.push(own.flag, valueHere(own.type.placeholder, takeNext(), name !== kebab));
  }
  return { head: [...words.slice(0, 1), ...options, ...words.slice(1)], command: target };
}

/** Other bridges count in milliseconds. */
function valueHere(placeholder: string, value: string, isForeign: boolean): string {
  return isForeign && placeholder === 'duration' && /^\d+$/.test(value) ? `${value}ms` : value;
}

function splitCommand(text: string): readonly string[] {
  return OF_SHELL.test(text) ? ['sh', '-c', text] : text.trim().split(/\s+/);
}
