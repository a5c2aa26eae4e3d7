/** The options of the library as TypeScript, from the table of the command line's: one option has one name. */
import { loginKeyOf } from '../src/cli/config-file/portage-key.ts';
import { type BridgeVerb, findFlag, OPTIONS, type Option } from '../src/cli/options/option-table.ts';

/** Said by members of a server's entry, as in the files of hosts. */
const OF_ENTRY = ['header', 'env', 'cwd'];
/** Defaults that a program has and the command line has not; see src/library/read-options.ts. */
const OWN_DEFAULTS: Readonly<Record<string, string>> = {
  login: 'never, unless an option of a login is given',
  status: 'false',
};
/** A program brings its own log. */
const OF_PROGRAM: readonly Option['group'][] = ['logging'];
const VERBS = ['serve', 'connect', 'probe'] as const;

interface Group {
  readonly head: string;
  /** The type of an object under `login`; absent: `LoginOptions`. */
  readonly login?: string;
  readonly has: (option: Option) => boolean;
}

/** An object that stands for `on-demand`, and says how. */
const LOGINS: readonly Group[] = [
  {
    head: '/** Login options, for logins on demand. */\nexport interface LoginOptions {',
    has: (option) => isOfAll(option),
  },
  {
    head: '/** Login options of a single server, for logins on demand. */\nexport interface ServerLoginOptions extends LoginOptions {',
    has: (option) => isOfServer(option) && !isOfAll(option),
  },
];

const GROUPS: readonly Group[] = [
  {
    head: '/** Options of a single server, under `portage` in its entry. */\nexport interface ServerOptions {',
    login: 'ServerLoginOptions',
    has: (option) => isOfServer(option) && !OF_ENTRY.includes(option.name),
  },
  {
    head: '/** Options of `serve`, `connect` and `probe`; for a single server they are defaults. */\nexport interface CommonOptions {',
    has: (option) => isOfAll(option) && VERBS.every((verb) => isForServers(option, verb)),
  },
  {
    head: '/** Options of `serve` and `connect` only. */\nexport interface ServedOptions extends CommonOptions {',
    has: (option) => isOfAll(option) && isFor(option, 'connect') && !isForServers(option, 'probe'),
  },
  {
    head: '/** Options of servers that clients reach over HTTP. */\nexport interface HttpOptions extends ServedOptions {',
    has: (option) => isOfAll(option) && isFor(option, 'serve') && !isFor(option, 'connect') && !isFor(option, 'probe'),
  },
];

function isOfServer(option: Option): boolean {
  return ['one-server', 'server'].includes(option.scope);
}

function isOfAll(option: Option): boolean {
  return ['process', 'server'].includes(option.scope) && !OF_PROGRAM.includes(option.group);
}

function isFor({ verbs }: Option, verb: BridgeVerb): boolean {
  return verbs.includes(verb);
}

/** A program probes one server at a time, of which no aggregate can be made. */
function isForServers(option: Option, verb: BridgeVerb): boolean {
  return isFor(option, verb) && !(verb === 'probe' && option.name === 'aggregate');
}

const HEAD = `/** Made by \`npm run docs\` from the options of the command line; do not edit. */

/** A number of seconds, or a text like \`'500ms'\`, \`'30s'\`, \`'5m'\` or \`'2h'\`. */
export type Duration = number | string;

/** A number of bytes, or a text like \`'64k'\` or \`'16m'\`. */
export type Size = number | string;
`;

/** The whole of src/library/option-types.ts. */
export function renderLibraryOptions(): string {
  const logins = LOGINS.map(({ head, has }) =>
    [
      head,
      ...OPTIONS.filter((option) => loginKeyOf(option) !== undefined && has(option)).map(renderLoginMember),
      '}',
    ].join('\n'),
  );
  const groups = GROUPS.map(({ head, has, login = 'LoginOptions' }) =>
    [head, ...OPTIONS.filter(has).map(renderMemberOf(login)), '}'].join('\n'),
  );
  return `${[HEAD, ...logins, ...groups].join('\n')}\n`
    .replaceAll('}\nexport', '}\n\nexport')
    .replaceAll('}\n/**', '}\n\n/**');
}

function renderMemberOf(interfaceOfLogin: string): (option: Option) => string {
  return (option) => {
    const type = option.name === 'login' ? `${typeOf(option)} | ${interfaceOfLogin}` : typeOf(option);
    return renderMember(option, option.name, type);
  };
}

function renderLoginMember(option: Option): string {
  return renderMember(option, loginKeyOf(option) ?? '', typeOf(option));
}

function renderMember(option: Option, name: string, type: string): string {
  return `  /** ${inWordsOfLibrary(describe(option))} */\n  readonly ${name}?: ${type} | undefined;`;
}

function describe({ name, describe: text, default: standard, defaultNote }: Option): string {
  const byDefault = OWN_DEFAULTS[name] ?? standard ?? defaultNote;
  return byDefault === undefined ? `${text}.` : `${text}. Default: ${byDefault}.`;
}

/** `--max-sessions` → `maxSessions`, where it is an option. */
function inWordsOfLibrary(text: string): string {
  return text.replaceAll(/--[a-z-]+/g, (written) => {
    const option = findFlag(written);
    return option === undefined ? written : `\`${option.name}\``;
  });
}

function typeOf({ kind, type }: Option): string {
  if (kind === 'list') {
    return `string | readonly string[]${type.readMember === undefined ? '' : ' | Readonly<Record<string, string>>'}`;
  }
  return type.typescript ?? type.choices?.map((choice) => `'${choice}'`).join(' | ') ?? 'string';
}
