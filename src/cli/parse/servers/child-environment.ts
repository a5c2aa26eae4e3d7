/**
 * Composes the environment of the wrapped server from our own. docs/internals/decisions/0002-child-environment.md says
 * why a list of names is passed on and not everything.
 */
import { parseEnv } from 'node:util';
import { ENV_PREFIX } from '../../options/option-names.ts';
import type { Parsed } from '../../options/value-type.ts';

/**
 * Variables that locate programs, home folders, locales, temporary files and network proxies. None holds credentials.
 */
const PASSED_NAMES = [
  ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TEMP', 'TMP'],
  ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
].flat();

/** Variables without which few programs start on Windows. */
const PASSED_NAMES_WINDOWS = [
  ['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'OS', 'PROCESSOR_ARCHITECTURE', 'NUMBER_OF_PROCESSORS'],
  ['APPDATA', 'LOCALAPPDATA', 'PROGRAMDATA', 'ALLUSERSPROFILE', 'USERPROFILE', 'USERNAME', 'HOMEDRIVE', 'HOMEPATH'],
  ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'PROGRAMW6432', 'COMMONPROGRAMFILES', 'COMMONPROGRAMFILES(X86)'],
].flat();

const PASSED_PREFIXES = ['LC_', 'XDG_'];

/**
 * npm's own settings (registry, cache, proxy), which wrapped `npx` servers need. Settings whose names suggest
 * credentials are withheld.
 */
const NPM_PREFIX = /^npm_config_/i;
const CREDENTIAL_NAME = /auth|token|password|passwd|secret|username|otp|_(key|cert)$/i;

/**
 * Variables about the start of this process, which would mislead a child: `npx -p mcp-portage …` exports its package
 * list, and a wrapped `npx other-server` would use that list and not find its command. The sockets that systemd passes
 * on are for this process as well.
 */
const NEVER_INHERITED = /^(npm_config_(package|call)|LISTEN_(FDS|PID|PIDFDID|FDNAMES))$/i;

export type Environment = Readonly<Record<string, string | undefined>>;

/** The value of an `--env`: a name with its value, or with `undefined` to copy the value from our own environment. */
export interface EnvAssignment {
  readonly name: string;
  readonly value: string | undefined;
}

/** The names that an assignment accepts. */
export const VARIABLE_NAME = /^[^=\s\0]{1,1000}$/;

/** Parses `NAME=value`, or `NAME` to copy its value. */
export function parseAssignment(text: string): Parsed<EnvAssignment> {
  const match = /^([^=\s]+)(?:=(.*))?$/s.exec(text);
  if (match?.[1] === undefined) return { ok: false, expected: 'NAME=value, or NAME to copy it from this environment' };
  return { ok: true, value: { name: match[1], value: match[2] } };
}

/** Parses a file with `NAME=value` on each line. Returns undefined if it is not a text file. */
export function parseEnvFile(text: string): readonly EnvAssignment[] | undefined {
  if (text.includes('\0')) return undefined;
  const found = Object.entries(parseEnv(text)).map(([name, value]) => ({ name, value }));
  return found.filter(({ name, value }) => value !== undefined && VARIABLE_NAME.test(name));
}

export interface ChildEnvironmentRequest {
  readonly ours: Environment;
  readonly inheritAll: boolean;
  readonly assignments: readonly EnvAssignment[];
  /**
   * Names that are not inherited even with `inheritAll`: those of the bridge's secrets, and those that --map-header
   * sets.
   */
  readonly withheldAlways: readonly string[];
  readonly platform: NodeJS.Platform;
}

export interface ChildEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Sorted names of our variables that the child does not get. Settings of the bridge itself are left out. */
  readonly withheld: readonly string[];
  /** Names given as `--env NAME` that are not set in our environment. */
  readonly missing: readonly string[];
}

export function composeChildEnvironment(request: ChildEnvironmentRequest): ChildEnvironment {
  const { ours, assignments } = request;
  const inherited = inherit(request);
  if (assignments.length === 0) return { ...inherited, missing: [] };
  const env = { ...inherited.env };
  const withheld = new Set(inherited.withheld);
  const missing: string[] = [];
  for (const { name, value = ours[name] } of assignments) {
    if (value === undefined) missing.push(name);
    else env[name] = value;
    withheld.delete(name);
  }
  return { env, withheld: [...withheld], missing };
}

type Inherited = Pick<ChildEnvironment, 'env' | 'withheld'>;

/**
 * A cache of inherited variables, by our environment and by the options that select them: most servers of a large file
 * inherit the same.
 */
const inheritedOf = new WeakMap<Environment, Map<string, Inherited>>();

function inherit({ ours, inheritAll, withheldAlways, platform }: ChildEnvironmentRequest): Inherited {
  const known = inheritedOf.get(ours) ?? new Map<string, Inherited>();
  inheritedOf.set(ours, known);
  const key = JSON.stringify([inheritAll, withheldAlways, platform]);
  const found = known.get(key);
  if (found !== undefined) return found;
  const env: Record<string, string> = {};
  const withheld: string[] = [];
  for (const [name, value] of Object.entries(ours)) {
    if (value === undefined || name.toUpperCase().startsWith(ENV_PREFIX) || NEVER_INHERITED.test(name)) continue;
    if (withheldAlways.includes(name)) continue;
    if (inheritAll || isPassed(name, platform)) env[name] = value;
    else withheld.push(name);
  }
  const inherited = { env, withheld: withheld.sort() };
  known.set(key, inherited);
  return inherited;
}

function isPassed(name: string, platform: NodeJS.Platform): boolean {
  if (NPM_PREFIX.test(name)) return !CREDENTIAL_NAME.test(name);
  if (platform === 'win32') {
    // Names are case-insensitive on Windows: shells write both `Path` and `PATH`.
    const upper = name.toUpperCase();
    return PASSED_NAMES.includes(upper) || PASSED_NAMES_WINDOWS.includes(upper);
  }
  return PASSED_NAMES.includes(name) || PASSED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
