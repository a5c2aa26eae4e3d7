import { printableLines } from '../../printable.ts';
import type { FoundHostFile, Info, StateFolder } from './collect-info.ts';

type Line = readonly [left: string, right: string];

/** Renders the report as plain text without colors, since it is made to be pasted. Ends with a line break. */
export function renderInfo({ version, node, v8, system, hosts, state, variables }: Info): string {
  const { platform, release, arch, container } = system;
  const where = container === null ? '' : `, in a container (${container})`;
  const text = [
    ...renderLines([
      ['mcp-portage', version],
      ['Node', `${node.replace(/^v/, '')} (V8 ${v8})`],
      ['System', `${platform} ${release}, ${arch}${where}`],
    ]),
    '',
    'Configuration files of hosts',
    ...renderLines(hosts.map((file) => [file.host, `${file.file}: ${describeFile(file)}`])),
    ...(hosts.length === 0 ? ['  none found'] : []),
    '',
    'Kept by mcp-portage',
    ...renderLines(state.map((folder) => [STATES[folder.what], describeFolder(folder)])),
    '',
    'Variables that are set',
    ...(variables.length === 0 ? ['  none'] : variables.map((name) => `  ${name}`)),
  ];
  return printableLines(`${text.join('\n')}\n`);
}

/** The report for programs. */
export function renderInfoJson(info: Info): string {
  return `${JSON.stringify(info, undefined, 2)}\n`;
}

const STATES: Readonly<Record<StateFolder['what'], string>> = {
  logins: 'logins',
  usage: 'usage counts',
  'compiled-code': 'compiled code',
};

function describeFile({ servers, disabled, problem }: FoundHostFile): string {
  if (problem !== null) return `found, cannot be read: ${problem}`;
  const off = disabled === null || disabled === 0 ? '' : `, and ${disabled} disabled`;
  return `${servers} ${servers === 1 ? 'server' : 'servers'}${off}`;
}

function describeFolder({ folder, exists }: StateFolder): string {
  if (folder === null) return 'nowhere, since there is no home folder';
  return exists ? folder : `${folder} (does not exist)`;
}

function renderLines(lines: readonly Line[]): readonly string[] {
  const width = Math.max(0, ...lines.map(([left]) => left.length));
  return lines.map(([left, right]) => `  ${left.padEnd(width)}  ${right.replaceAll('\n', '\n    ')}`);
}
