/**
 * Explains options that do not exist: those of other bridges, those with a single dash, and misspelled ones. Each
 * explanation says what to use instead.
 */

import { suggest } from '../suggest.ts';
import { ANSWERS, BY_URL, LETTER_ANSWERS } from './mistaken-options.ts';
import { findFlag, OPTIONS } from './options/option-table.ts';
import { isUrlLike } from './parse/servers/target.ts';

export interface UnknownOption {
  readonly name: string;
  /** The word as written on the command line. */
  readonly written: string;
  readonly value: unknown;
}

export function explainUnknownOption({ name, written, value }: UnknownOption): string {
  const kebab = toKebabCase(name);
  const shown = written.split('=', 1)[0] ?? written;
  // In `-port 80`, the parser takes each letter for an option.
  const [, afterDash = ''] = /^-(\w[\w-]+)$/.exec(shown) ?? [];
  if (findFlag(`--${toKebabCase(afterDash)}`) !== undefined) {
    return `Unknown option ${shown}: names of options have two dashes; did you mean --${toKebabCase(afterDash)}?`;
  }
  if (kebab === 'stdio') {
    const command = typeof value === 'string' ? value : '<command> [args...]';
    return `Unknown option ${shown}: the command goes after \`--\`, unquoted: mcp-portage -- ${command}`;
  }
  // `--no-sse` means the opposite of `--sse`, so it needs an answer of its own.
  const equivalent = shown.startsWith('--no-')
    ? ANSWERS.get(toKebabCase(shown.slice('--'.length)))
    : (ANSWERS.get(kebab) ?? LETTER_ANSWERS.get(name));
  if (equivalent !== undefined) return `Unknown option ${shown}: ${equivalent}`;
  const isOurs = findFlag(`--${kebab}`) !== undefined;
  const meant = isOurs
    ? [kebab]
    : suggest(
        kebab,
        OPTIONS.map((option) => option.flag.slice('--'.length)),
      );
  if (meant.length > 0) {
    const unit = meant.every(isDuration) ? explainUnit(value) : '';
    return `Unknown option ${shown}; did you mean ${meant.map((found) => `--${found}`).join(' or ')}?${unit}`;
  }
  return `Unknown option ${shown}; mcp-portage help all lists them. Options of the server go after \`--\`, with its command.`;
}

/**
 * Explains `--sse <url>` and `--url <url>`, with which other bridges connect a stdio client to a remote server. Without
 * a verb, our own `--sse` would instead serve that server.
 */
export function explainUrlOfOption(head: readonly string[]): string | undefined {
  if (head.some((word) => word === '--url' || word.startsWith('--url=')))
    return `--url is for \`report\`; else ${BY_URL}`;
  const at = head.indexOf('--sse');
  if (at === -1 || !isUrlLike(head[at + 1] ?? '')) return undefined;
  return `--sse takes no URL: ${BY_URL}`;
}

function isDuration(name: string): boolean {
  return findFlag(`--${name}`)?.type.placeholder === 'duration';
}

/** Other bridges count in milliseconds; copied unchanged, such a number would be a thousand times too long. */
function explainUnit(value: unknown): string {
  if (typeof value !== 'string' || !/^\d+$/.test(value)) return '';
  return ` A bare number means seconds; milliseconds are written ${value}ms.`;
}

/** Converts `outputTransport` and `output_transport` to `output-transport`. */
export function toKebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('_', '-')
    .toLowerCase();
}
