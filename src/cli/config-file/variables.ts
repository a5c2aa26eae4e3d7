/** Variables in the texts of a configuration file, in the spellings of all hosts. What is put in is not looked at again. */
import { basename } from 'node:path';
import type { Environment } from '../parse/servers/child-environment.ts';

export type ExpandedText =
  | { readonly ok: true; readonly text: string }
  /** Ends with a full stop, and names variables, never values. */
  | { readonly ok: false; readonly problem: string };

export interface VariableSources {
  readonly env: Environment;
  readonly homeFolder: string;
  readonly platform: NodeJS.Platform;
  readonly workspaceFolder: string;
  /** By id: what VS Code would offer when it asks. */
  readonly inputs: ReadonlyMap<string, { readonly default: string | undefined }>;
  /** opencode has `{env:NAME}` and `{file:path}` besides. */
  readonly spelling: 'common' | 'opencode';
  /** Reads a file that `{file:path}` names. */
  readonly readFile: (path: string) => ExpandedText;
}

/** Limits of one text, and of all texts of a file together: a few short lines can name a large value many times. */
const MAX_TEXT_LENGTH = 2 ** 20;
const MAX_ALL_LENGTH = 2 ** 25;

const COMMON = /\$\{([^}]*)\}/g;
const OPENCODE = /\$\{([^}]*)\}|\{(env|file):([^{}]+)\}/g;
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

  expand(text: string): ExpandedText {
    const pattern = this.#sources.spelling === 'opencode' ? OPENCODE : COMMON;
    const parts: string[] = [];
    let length = 0;
    let end = 0;
    // Behind the last brace nothing ends, and looking for the end from each beginning would take its time.
    for (const match of text.slice(0, text.lastIndexOf('}') + 1).matchAll(pattern)) {
      const [written, braced, kind, name = ''] = match;
      const value =
        braced !== undefined
          ? this.#valueOf(braced)
          : kind === 'file'
            ? this.#sources.readFile(name)
            : this.#fromEnvironment(name);
      if (!value.ok) return value;
      const before = text.slice(end, match.index);
      parts.push(before, value.text);
      length += before.length + value.text.length;
      if (length > MAX_TEXT_LENGTH) return refuse('longer than 1 MiB with the values of its variables.');
      end = match.index + written.length;
    }
    if (parts.length === 0) return { ok: true, text };
    this.#expandedLength += length;
    if (this.#expandedLength > MAX_ALL_LENGTH) return refuse('too much text, with the values of variables.');
    return { ok: true, text: parts.join('') + text.slice(end) };
  }

  /** @param written what stands between the braces */
  #valueOf(written: string): ExpandedText {
    const builtIn = this.#builtIn.get(written);
    if (builtIn !== undefined) return { ok: true, text: builtIn };
    if (written.includes('${')) return refuse('one variable stands within another; set a variable to the whole value.');
    if (written.startsWith('input:')) return this.#fromInput(written.slice('input:'.length));
    return this.#fromEnvironment(written.startsWith('env:') ? written.slice('env:'.length) : written);
  }

  #fromEnvironment(written: string): ExpandedText {
    const [, name, fallback] = NAME.exec(written) ?? [];
    if (name === undefined) return refuse(UNKNOWN);
    const found = this.#find(name) ?? fallback;
    if (found !== undefined) return { ok: true, text: found };
    return refuse(
      `the variable ${name} is not set here; set it, or write \${${name}:-…} with a value to fall back on.`,
    );
  }

  /** VS Code asks its user. Here its id is the name of a variable, as it is or as names of variables are mostly written. */
  #fromInput(id: string): ExpandedText {
    const name = id.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
    const found = this.#find(id) ?? this.#find(name) ?? this.#sources.inputs.get(id)?.default;
    if (found !== undefined) return { ok: true, text: found };
    if (!/^[A-Z_][A-Z0-9_]{0,99}$/.test(name)) return refuse(UNKNOWN);
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

function refuse(problem: string): ExpandedText {
  return { ok: false, problem };
}
