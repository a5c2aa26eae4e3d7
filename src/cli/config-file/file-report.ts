/**
 * What is said about a configuration file, or about options of that shape that a program gives: all mistakes at once, and
 * each kind of warning in one line. No values.
 */
import { BridgeError } from '../../errors.ts';
import type { Path, Position } from './config-tree.ts';

/** More lines than that help nobody. */
const MAX_MISTAKES = 20;
const MAX_PLACES = 10;
/** A key may be as long as the file. */
const MAX_KEY_LENGTH = 80;

/** By kind of warning, what is said of the places in front. */
const WARNINGS = {
  unknown: 'not known to any host nor to mcp-portage, or without meaning for this kind of server; left out',
  login:
    'the login of the host itself, which is not used here; "portage": {"login": "on-demand"} in that entry makes mcp-portage log in',
  helper: 'a program of the host that makes headers, which is not run; give the headers themselves',
  seconds: 'less than 1000, so read as seconds, as Cline and Roo Code mean it',
  unbraced: `looks like the name of a variable, but stays as it is: only \${NAME} takes a value from the environment`,
  shadowed: 'not read, since servers are taken from another key of this file',
} as const;

export type WarningKind = keyof typeof WARNINGS;

/** `options`: the values come from a program, which finds them by their path. */
export type Reported = { readonly kind: 'file'; readonly name: string } | { readonly kind: 'options' };

export class FileReport {
  readonly #reported: Reported;
  readonly #mistakes: { readonly at: Position; readonly text: string }[] = [];
  readonly #warnings = new Map<WarningKind, string[]>();

  /** @param reported of a file its name, without the folder */
  constructor(reported: Reported) {
    this.#reported = reported;
  }

  /** `claude.json:12:5 (mcpServers.github)` */
  sourceOf({ line, column }: Position, path: Path): string {
    if (this.#reported.kind === 'options') return renderPath(path);
    return `${this.#reported.name}:${line}:${column} (${renderPath(path)})`;
  }

  /** @param problem ends with a full stop, and holds no value of the file */
  mistake({ line, column }: Position, path: Path, problem: string): void {
    const where = path.length === 0 ? '' : `${renderPath(path)}: `;
    const place = this.#reported.kind === 'options' ? '' : `${this.#reported.name}:${line}:${column}: `;
    this.#mistakes.push({ at: { line, column }, text: `${place}${where}${problem}` });
  }

  warn(kind: WarningKind, path: Path): void {
    const places = this.#warnings.get(kind) ?? [];
    places.push(renderPath(path));
    this.#warnings.set(kind, places);
  }

  warnings(): readonly string[] {
    const before = this.#reported.kind === 'options' ? '' : `${this.#reported.name}: `;
    return [...this.#warnings].map(([kind, places]) => `${before}${listPlaces(places)}: ${WARNINGS[kind]}.`);
  }

  get mistakeCount(): number {
    return this.#mistakes.length;
  }

  /** Throws with every mistake so far, in the order of the file: ERR_CONFIG_FILE, or ERR_CONFIG_OPTION where there is none. */
  throwMistakes(): void {
    if (this.#mistakes.length === 0) return;
    const sorted = this.#mistakes.toSorted(
      (one, other) => one.at.line - other.at.line || one.at.column - other.at.column,
    );
    // A file that breaks off lacks several closing brackets at one place.
    const texts = [...new Set(sorted.map(({ text }) => text))];
    const lines = texts.slice(0, MAX_MISTAKES);
    const more = texts.length - lines.length;
    const code = this.#reported.kind === 'options' ? 'ERR_CONFIG_OPTION' : 'ERR_CONFIG_FILE';
    throw new BridgeError(code, [...lines, ...(more > 0 ? [`… and ${more} more.`] : [])].join('\n'));
  }
}

/** `mcpServers.github.args[0]`, `mcpServers["two words"]` */
export function renderPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    if (/^[\w-]{1,80}$/.test(step)) return text === '' ? step : `${text}.${step}`;
    return `${text}[${quoteKey(step)}]`;
  }, '');
}

export function quoteKey(key: string): string {
  return JSON.stringify(key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`);
}

function listPlaces(places: readonly string[]): string {
  const shown = places.slice(0, MAX_PLACES).join(', ');
  return places.length <= MAX_PLACES ? shown : `${shown} and ${places.length - MAX_PLACES} more`;
}
