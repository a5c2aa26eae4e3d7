/**
 * What of our environment the wrapped server gets to see. docs/internals/decisions/0002-child-environment.md says why it is a
 * list of names and not everything.
 */
import { parseEnv } from 'node:util';
import { ENV_PREFIX } from '../../options/option-table.ts';

/** Where programs, homes, languages, temporary files and the way to the network are found. No credentials. */
const PASSED_NAMES = [
  ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LANGUAGE', 'TZ', 'TMPDIR', 'TEMP', 'TMP'],
  ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'],
  ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
].flat();

/** Without these hardly a program starts on Windows. */
const PASSED_NAMES_WINDOWS = [
  ['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'OS', 'PROCESSOR_ARCHITECTURE', 'NUMBER_OF_PROCESSORS'],
  ['APPDATA', 'LOCALAPPDATA', 'PROGRAMDATA', 'ALLUSERSPROFILE', 'USERPROFILE', 'USERNAME', 'HOMEDRIVE', 'HOMEPATH'],
  ['PROGRAMFILES', 'PROGRAMFILES(X86)', 'PROGRAMW6432', 'COMMONPROGRAMFILES', 'COMMONPROGRAMFILES(X86)'],
].flat();

const PASSED_PREFIXES = ['LC_', 'XDG_'];

/** npm's own settings (registry, cache, proxy), which wrapped `npx` servers need; names that smell of a login stay. */
const NPM_PREFIX = /^npm_config_/i;
const CREDENTIAL_NAME = /auth|token|password|passwd|secret|username|otp|_(key|cert)$/i;

/**
 * How this very process was started, never meant for the one it starts: `npx -p mcp-portage …` exports the package
 * list, and a wrapped `npx other-server` would take it for its own and not find the command. Sockets that systemd hands
 * over are for us, too.
 */
const NEVER_INHERITED = /^(npm_config_(package|call)|LISTEN_(FDS|PID|PIDFDID|FDNAMES))$/i;

export type Environment = Readonly<Record<string, string | undefined>>;

/** One `--env`: a value, or `undefined` to copy the name from our own environment. */
export interface EnvAssignment {
  readonly name: string;
  readonly value: string | undefined;
}

/** What an assignment can name. */
export const VARIABLE_NAME = /^[^=\s\0]{1,1000}$/;

/** The variables of a file that has `NAME=value` on each line; undefined: it is no text. */
export function parseEnvFile(text: string): readonly EnvAssignment[] | undefined {
  if (text.includes('\0')) return undefined;
  const found = Object.entries(parseEnv(text)).map(([name, value]) => ({ name, value }));
  return found.filter(({ name, value }) => value !== undefined && VARIABLE_NAME.test(name));
}

export interface ChildEnvironmentRequest {
  readonly ours: Environment;
  readonly inheritAll: boolean;
  readonly assignments: readonly EnvAssignment[];
  /** Names that are not handed on from here: what clients show to the bridge, and what is told of each of them. */
  readonly withheldAlways: readonly string[];
  readonly platform: NodeJS.Platform;
}

export interface ChildEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Names of ours the child does not get, sorted. Never the bridge's own settings. */
  readonly withheld: readonly string[];
  /** Names of `--env NAME` that are not set here. */
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

/** What servers inherit, by an environment of ours and what is asked of it: of many servers most inherit the same. */
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
    // Names are case-insensitive there: what is `Path` in one shell is `PATH` in another.
    const upper = name.toUpperCase();
    return PASSED_NAMES.includes(upper) || PASSED_NAMES_WINDOWS.includes(upper);
  }
  return PASSED_NAMES.includes(name) || PASSED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
