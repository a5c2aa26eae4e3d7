/** Variables in the texts of a configuration file, as the hosts write them. */
import { basename, sep } from 'node:path';
import type { Environment } from '../parse/child-environment.ts';

export interface VariableSources {
  readonly env: Environment;
  /** The folder that a project is in. */
  readonly workspaceFolder: string;
  readonly userHome: () => string;
  /** What VS Code would ask its user, by id; its default where there is one. */
  readonly inputs: ReadonlyMap<string, string | undefined>;
  /** `${env:NAME}`, or `{env:NAME}` as opencode writes it, or either, where it is not known which host a file is of. */
  readonly style: VariableStyle;
  /** Throws for a file that cannot be read. */
  readonly readFile: (path: string) => string;
}

export type Expanded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly problem: string };

/** What is put in is not looked through again. */
export function expandVariables(text: string, sources: VariableSources): Expanded {
  let problem: string | undefined;
  const resolve = (found: string | Unresolved): string => {
    if (typeof found === 'string') return found;
    problem ??= found.problem;
    return '';
  };
  const expanded = text.replaceAll(
    PATTERNS[sources.style],
    (_, dollar: string | undefined, braces: string | undefined) =>
      resolve(dollar === undefined ? inBraces(braces ?? '', sources) : afterDollar(dollar, sources)),
  );
  return problem === undefined ? { ok: true, text: expanded } : { ok: false, problem };
}

export type VariableStyle = 'dollar' | 'braces' | 'either';

/** Without a dollar sign only those two kinds: braces stand in many a text, such as JSON. */
const PATTERNS: Readonly<Record<VariableStyle, RegExp>> = {
  dollar: /\$\{([^{}]*)\}/g,
  braces: /(?!)()|\{((?:env|file):[^{}]*)\}/g,
  either: /\$\{([^{}]*)\}|\{((?:env|file):[^{}]*)\}/g,
};

interface Unresolved {
  readonly problem: string;
}

function afterDollar(inner: string, sources: VariableSources): string | Unresolved {
  const { env, workspaceFolder, userHome, inputs } = sources;
  switch (inner) {
    case 'workspaceFolder':
      return workspaceFolder;
    case 'workspaceFolderBasename':
      return basename(workspaceFolder);
    case 'userHome':
      return userHome();
    case 'pathSeparator':
    case '/':
      return sep;
  }
  const [, kind = '', rest = ''] = /^(env|input):(.*)$/s.exec(inner) ?? [];
  if (kind === 'input') return inputOf(rest, env, inputs);
  const variable = kind === 'env' ? rest : inner;
  const [, name, fallback] = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(variable) ?? [];
  if (name === undefined) {
    return {
      problem: `\${${shown(inner)}} is no variable known here; expected \${NAME}, \${env:NAME} or \${input:id}`,
    };
  }
  return env[name] || (fallback ?? unset(name));
}

function inBraces(inner: string, { env, readFile }: VariableSources): string | Unresolved {
  const name = inner.slice(inner.indexOf(':') + 1);
  if (inner.startsWith('env:')) return env[name] || unset(name);
  try {
    return readFile(name).trim();
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable';
    return { problem: `the file ${shown(name)} cannot be read (${code})` };
  }
}

/** Nobody can be asked here: the environment says what the user would. */
function inputOf(id: string, env: Environment, inputs: VariableSources['inputs']): string | Unresolved {
  const variable = inputVariable(id);
  const found = env[id] || env[variable] || inputs.get(id);
  if (found !== undefined && found !== '') return found;
  return { problem: `the host would ask its user for ${shown(id)}; set the variable ${variable} instead` };
}

/** `github-token` → `GITHUB_TOKEN`. */
export function inputVariable(id: string): string {
  return id.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_');
}

/** An empty variable counts as not set, as everywhere here. */
function unset(name: string): Unresolved {
  return { problem: `the variable ${name} is not set here; set it, or write a default: \${${name}:-…}` };
}

/** It may be a mistake that holds more than a name. */
function shown(name: string): string {
  return /^[\w./~:-]{1,80}$/.test(name) ? name : '…';
}
