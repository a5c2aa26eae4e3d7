/**
 * Collects mistakes and warnings about a configuration file, or about a program's options of the same shape. All
 * mistakes are reported together, and each kind of warning in one line. Values are never shown.
 */
import { BridgeError } from '../../errors.ts';
import type { Place } from '../options/given-options.ts';
import type { LeftOutServer } from './config-file.ts';
import type { Path, Position } from './config-tree.ts';

/** A longer message would not be read. */
export const MAX_MISTAKES = 20;
const MAX_PLACES = 10;
/** Longer keys are cut off in messages; nothing else limits their length. */
const MAX_KEY_LENGTH = 80;

/** The text of each kind of warning, which follows a list of paths. */
const WARNINGS = {
  unknown: 'not known to any host nor to mcp-portage, or without meaning for this kind of server; left out',
  login:
    'the login of the host itself. Its client id, scopes and callback are used where mcp-portage logs in: connect does, and serve with "portage": {"login": "on-demand"} in that entry',
  helper: 'a program of the host that makes headers, which is not run; give the headers themselves',
  seconds: 'less than 1000, so read as seconds, as Cline and Roo Code mean it',
  unbraced: `has what looks like the name of a variable, which stays as it is: write \${NAME} with the name of a variable that is set here`,
  placeholder: 'has {{…}}, which only the host itself fills in; it stays as it is',
  kept: `has a \${…} of a kind that is not known here; it stays as it is, for the program to read`,
  unset: 'names variables that are not set here; they are left out',
  shadowed: 'not read, since servers are taken from another key of this file',
  builtIn: 'a part of the host itself and no server that can be started; left out',
  notAtStart:
    'false, so the host does not start this server by itself; it is served, since every server here starts with its first client. "disabled": true leaves it out',
  switches:
    'switches off servers or tools of the host, and is not read; write "disabled": true or excludeTools into the entry',
  project: 'not served, since another server with this name is',
} as const;

export type WarningKind = keyof typeof WARNINGS;

/**
 * The subject of the report. With `options`, the values come from a program, and messages give paths without positions.
 */
export type Reported = { readonly kind: 'file'; readonly name: string } | { readonly kind: 'options' };

interface Mistake {
  readonly at: Position;
  readonly text: string;
}

/** The mistakes of one entry. They do not affect the rest of the file. */
interface WrongEntry {
  readonly name: string;
  readonly mistakes: Mistake[];
}

export class FileReport {
  readonly #reported: Reported;
  /** Mistakes that concern the whole file, or a required server. */
  readonly #mistakes: Mistake[] = [];
  readonly #entries: WrongEntry[] = [];
  /** The entry being read, if it can be left out of the file; else undefined. */
  #entry: WrongEntry | undefined;
  #mistakeCount = 0;
  readonly #warnings = new Map<WarningKind, string[]>();

  /** @param reported for a file, its name without the folder */
  constructor(reported: Reported) {
    this.#reported = reported;
  }

  get kind(): Reported['kind'] {
    return this.#reported.kind;
  }

  /** Returns a place for messages, such as `claude.json:12:5 (mcpServers.github)`. */
  placeOf({ line, column }: Position, path: Path): Place {
    if (this.#reported.kind === 'options') return { kind: 'field', text: renderPath(path) };
    return { kind: 'file', text: `${this.#reported.name}:${line}:${column} (${renderPath(path)})` };
  }

  /** @param problem a text that ends with a period and has no value of the file */
  mistake({ line, column }: Position, path: Path, problem: string): void {
    const where = path.length === 0 ? '' : `${renderPath(path)}: `;
    const place = this.#reported.kind === 'options' ? '' : `${this.#reported.name}:${line}:${column}: `;
    const mistakes = this.#entry?.mistakes ?? this.#mistakes;
    mistakes.push({ at: { line, column }, text: `${place}${where}${problem}` });
    this.#mistakeCount += 1;
  }

  /** Runs `read` and assigns the mistakes that it reports to the entry of this name, which can be left out. */
  ofEntry(name: string, read: () => void): void {
    this.#entry = { name, mistakes: [] };
    this.#entries.push(this.#entry);
    read();
    this.#entry = undefined;
  }

  leftOut(): readonly LeftOutServer[] {
    const wrong = this.#entries.filter(({ mistakes }) => mistakes.length > 0);
    return wrong.map(({ name, mistakes }) => ({ name, error: this.#toError(mistakes) }));
  }

  /** @param findMeant finds the key that was probably meant by the last one of the path; called if the place is shown */
  warn(kind: WarningKind, path: Path, findMeant?: () => string | undefined): void {
    const places = this.#warnings.get(kind) ?? [];
    const meant = places.length < MAX_PLACES ? findMeant?.() : undefined;
    places.push(meant === undefined ? renderPath(path) : `${renderPath(path)} (did you mean ${meant}?)`);
    this.#warnings.set(kind, places);
  }

  warnings(): readonly string[] {
    const before = this.#reported.kind === 'options' ? '' : `${this.#reported.name}: `;
    return [...this.#warnings].map(([kind, places]) => `${before}${listPlaces(places)}: ${WARNINGS[kind]}.`);
  }

  get mistakeCount(): number {
    return this.#mistakeCount;
  }

  /** Throws ERR_CONFIG_FILE with all mistakes so far if the file as a whole is wrong. */
  throwMistakesOfFile(): void {
    if (this.#mistakes.length > 0) this.throwMistakes();
  }

  /** Throws all mistakes so far, if any: ERR_CONFIG_FILE, or ERR_CONFIG_OPTION for the options of a program. */
  throwMistakes(): void {
    const mistakes = [...this.#mistakes, ...this.#entries.flatMap((entry) => entry.mistakes)];
    if (mistakes.length > 0) throw this.#toError(mistakes);
  }

  /** Lists mistakes in the order of the file. */
  #toError(mistakes: readonly Mistake[]): BridgeError {
    const sorted = mistakes.toSorted((one, other) => one.at.line - other.at.line || one.at.column - other.at.column);
    // A truncated file lacks several closing brackets at the same position, with the same message.
    const texts = [...new Set(sorted.map(({ text }) => text))];
    const lines = texts.slice(0, MAX_MISTAKES);
    const more = texts.length - lines.length;
    const code = this.#reported.kind === 'options' ? 'ERR_CONFIG_OPTION' : 'ERR_CONFIG_FILE';
    return new BridgeError(code, [...lines, ...(more > 0 ? [`… and ${more} more.`] : [])].join('\n'));
  }
}

/** Renders a path like `mcpServers.github.args[0]` or `mcpServers["two words"]`. */
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
