/**
 * Expands the variables in texts of a configuration file, in the spellings of all hosts. Inserted values are not
 * expanded again.
 */
import { basename } from 'node:path';
import type { Environment } from '../parse/servers/child-environment.ts';

export type ExpandedText =
  | {
      readonly ok: true;
      readonly text: string;
      /** True if a variable of an unknown kind was kept in the text, which happens in arguments only. */
      readonly hasUnknown?: boolean;
    }
  /** The problem ends with a period. It names variables and never shows values. */
  | { readonly ok: false; readonly problem: string };

/** The value of one variable. */
type FoundValue =
  | { readonly ok: true; readonly text: string }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The unset variable; undefined if its kind is unknown or its value was refused. */
      readonly missing?: string;
      readonly isUnknown?: boolean;
    };

export interface VariableSources {
  readonly env: Environment;
  readonly homeFolder: string;
  readonly platform: NodeJS.Platform;
  readonly workspaceFolder: string;
  /** VS Code's inputs by id, with the values that it would suggest to its user. */
  readonly inputs: ReadonlyMap<string, { readonly default: string | undefined }>;
  /** With `opencode`, `{env:NAME}` and `{file:path}` are variables, too; with `bare`, `$NAME` is. */
  readonly spelling: 'common' | 'opencode' | 'bare';
  /** Reads a file that `{file:path}` names. */
  readonly readFile: (path: string) => ExpandedText;
}

/** Limits for one text, and for all texts of a file together: a few short lines can insert a large value many times. */
const MAX_TEXT_LENGTH = 2 ** 20;
const MAX_ALL_LENGTH = 2 ** 25;

/** Continue also has `${{ secrets.NAME }}`. */
const COMMON = /\$\{\{\s*(?:secrets|inputs)\.(?<secret>[^{}\s]+)\s*\}\}|\$\{(?<braced>[^}]*)\}/g;
const OPENCODE = new RegExp(`${COMMON.source}|\\{(?<kind>env|file):(?<name>[^{}]+)\\}`, 'g');
const BARE = new RegExp(`${COMMON.source}|\\$(?<bare>[A-Za-z_][A-Za-z0-9_]*)`, 'g');
const PATTERNS: Readonly<Record<VariableSources['spelling'], RegExp>> = {
  common: COMMON,
  opencode: OPENCODE,
  bare: BARE,
};
const NAME = /^([A-Za-z_][A-Za-z0-9_()]*)(?::-(.*))?$/s;

export class Variables {
  readonly #sources: VariableSources;
  readonly #builtIn: ReadonlyMap<string, string>;
  #expandedLength = 0;

  constructor(sources: VariableSources) {
    this.#sources = sources;
    const separator = sources.platform === 'win32' ? '\\' : '/';
    this.#builtIn = new Map([
      ['workspaceFolder', sources.workspaceFolder],
      ['workspaceFolderBasename', basename(sources.workspaceFolder)],
      ['userHome', sources.homeFolder],
      ['pathSeparator', separator],
      ['/', separator],
    ]);
  }

  /**
   * @param own in an argument of a program, the names of variables that the entry sets for that program. Variables that
   * only the program can replace are then kept. Undefined: all variables have to be replaced.
   */
  expand(text: string, own?: ReadonlySet<string>): ExpandedText {
    const { spelling } = this.#sources;
    const parts: string[] = [];
    let length = 0;
    let end = 0;
    let hasUnknown = false;
    // No variable ends after the last brace, and a search for the end from each beginning would be quadratic.
    const searched = spelling === 'bare' ? text : text.slice(0, text.lastIndexOf('}') + 1);
    for (const match of searched.matchAll(PATTERNS[spelling])) {
      const [written] = match;
      const found = this.#valueOfMatch(match.groups ?? {}, written);
      const stays = !found.ok && own !== undefined && (found.isUnknown === true || own.has(found.missing ?? ''));
      if (!found.ok && !stays) return { ok: false, problem: found.problem };
      hasUnknown ||= !found.ok && found.isUnknown === true;
      const value = found.ok ? found.text : written;
      const before = text.slice(end, match.index);
      parts.push(before, value);
      length += before.length + value.length;
      if (length > MAX_TEXT_LENGTH) return refuse('longer than 1 MiB with the values of its variables.');
      end = match.index + written.length;
    }
    if (parts.length === 0) return { ok: true, text };
    this.#expandedLength += length;
    if (this.#expandedLength > MAX_ALL_LENGTH) return refuse('too much text, with the values of variables.');
    return { ok: true, text: parts.join('') + text.slice(end), hasUnknown };
  }

  #valueOfMatch(
    { braced, secret, bare, kind, name = '' }: Readonly<Record<string, string | undefined>>,
    written: string,
  ): FoundValue {
    if (braced !== undefined) return this.#valueOf(braced);
    if (secret !== undefined) return this.#fromEnvironment(secret);
    // An unset `$NAME` is kept, as in the hosts with such variables: the text may not mean a variable.
    if (bare !== undefined) return { ok: true, text: this.#find(bare) ?? written };
    return kind === 'file' ? this.#sources.readFile(name) : this.#fromEnvironment(name);
  }

  /** @param written the text between the braces */
  #valueOf(written: string): FoundValue {
    const builtIn = this.#builtIn.get(written);
    if (builtIn !== undefined) return { ok: true, text: builtIn };
    if (written.includes('${')) return { ok: false, problem: NESTED, isUnknown: true };
    if (written.startsWith('input:')) return this.#fromInput(written.slice('input:'.length));
    return this.#fromEnvironment(written.startsWith('env:') ? written.slice('env:'.length) : written);
  }

  #fromEnvironment(written: string): FoundValue {
    const [, name, fallback] = NAME.exec(written) ?? [];
    if (name === undefined) return { ok: false, problem: UNKNOWN, isUnknown: true };
    const found = this.#find(name) ?? fallback;
    if (found !== undefined) return { ok: true, text: found };
    const problem = `the variable ${name} is not set here; set it, or write \${${name}:-…} with a value to fall back on.`;
    return { ok: false, problem, missing: name };
  }

  /** Takes an input that VS Code would ask for from the variable named like its id, as written or in upper case. */
  #fromInput(id: string): FoundValue {
    const name = id.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
    const found = this.#find(id) ?? this.#find(name) ?? this.#sources.inputs.get(id)?.default;
    if (found !== undefined) return { ok: true, text: found };
    if (!/^[A-Z_][A-Z0-9_]{0,99}$/.test(name)) return { ok: false, problem: UNKNOWN, isUnknown: true };
    return refuse(
      `VS Code would ask for this value; here it comes from the variable ${name}, which is not set. Set it.`,
    );
  }

  /** An empty variable counts as not set. */
  #find(name: string): string | undefined {
    const value = Object.hasOwn(this.#sources.env, name) ? this.#sources.env[name] : undefined;
    return value === '' ? undefined : value;
  }
}

const UNKNOWN = `a variable of a kind that is not known here; expected \${NAME}, \${NAME:-default}, \${env:NAME}, \${input:id}, \${workspaceFolder} or \${userHome}. For such a text itself, put it into a variable and name that.`;

const NESTED = 'one variable stands within another; set a variable to the whole value.';

function refuse(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}
