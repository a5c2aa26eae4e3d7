/** Variables in the texts of a configuration file, in the spellings of all hosts. What is put in is not looked at again. */
import { basename } from 'node:path';
import type { Environment } from '../parse/servers/child-environment.ts';

export type ExpandedText =
  | {
      readonly ok: true;
      readonly text: string;
      /** Whether something of a kind that is not known here stays in the text; only in arguments. */
      readonly hasUnknown?: boolean;
    }
  /** Ends with a full stop, and names variables, never values. */
  | { readonly ok: false; readonly problem: string };

/** What stands for one variable. */
type FoundValue =
  | { readonly ok: true; readonly text: string }
  | {
      readonly ok: false;
      readonly problem: string;
      /** The variable that is not set; undefined: it is of a kind that is not known, or refused for its value. */
      readonly missing?: string;
      readonly isUnknown?: boolean;
    };

export interface VariableSources {
  readonly env: Environment;
  readonly homeFolder: string;
  readonly platform: NodeJS.Platform;
  readonly workspaceFolder: string;
  /** By id: what VS Code would offer when it asks. */
  readonly inputs: ReadonlyMap<string, { readonly default: string | undefined }>;
  /** opencode has `{env:NAME}` and `{file:path}` besides; `bare`: `$NAME` is a variable, too. */
  readonly spelling: 'common' | 'opencode' | 'bare';
  /** Reads a file that `{file:path}` names. */
  readonly readFile: (path: string) => ExpandedText;
}

/** Limits of one text, and of all texts of a file together: a few short lines can name a large value many times. */
const MAX_TEXT_LENGTH = 2 ** 20;
const MAX_ALL_LENGTH = 2 ** 25;

/** Continue has `${{ secrets.NAME }}` besides. */
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
   * @param own for an argument of a program, the variables that its entry sets for it. What only the program itself can
   *   replace stays as it is there. Undefined: everything has to be replaced.
   */
  expand(text: string, own?: ReadonlySet<string>): ExpandedText {
    const { spelling } = this.#sources;
    const parts: string[] = [];
    let length = 0;
    let end = 0;
    let hasUnknown = false;
    // Behind the last brace nothing ends, and looking for the end from each beginning would take its time.
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
    // Without braces a text may mean itself: the hosts with such variables leave it alone where none is set.
    if (bare !== undefined) return { ok: true, text: this.#find(bare) ?? written };
    return kind === 'file' ? this.#sources.readFile(name) : this.#fromEnvironment(name);
  }

  /** @param written what stands between the braces */
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

  /** VS Code asks its user. Here its id is the name of a variable, as it is or as names of variables are mostly written. */
  #fromInput(id: string): FoundValue {
    const name = id.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
    const found = this.#find(id) ?? this.#find(name) ?? this.#sources.inputs.get(id)?.default;
    if (found !== undefined) return { ok: true, text: found };
    if (!/^[A-Z_][A-Z0-9_]{0,99}$/.test(name)) return { ok: false, problem: UNKNOWN, isUnknown: true };
    return refuse(
      `VS Code would ask for this value; here it comes from the variable ${name}, which is not set. Set it.`,
    );
  }

  /** An empty variable counts as not set, as everywhere here. */
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
