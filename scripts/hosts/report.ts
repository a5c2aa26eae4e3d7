/** The results as text for a terminal and as the page in the documents. Pure. */
import { CARRIER_TITLES, type Outcome, type Result, type SeenClient } from './results.ts';

export function renderLine(result: Result): string {
  const { carrier, configuredBy, outcome } = result;
  const how = configuredBy === '' ? '' : `, by ${configuredBy}`;
  const as = outcome.kind === 'connected' ? ` as ${clientOf(outcome.client)}, ${outcome.client.revision}` : '';
  return `${hostOf(result)} over ${CARRIER_TITLES[carrier]}${how}: ${describe(outcome)}${as}`.replaceAll('`', '');
}

export function renderSummary(results: readonly Result[]): string {
  const count = (kind: Outcome['kind']) => results.filter(({ outcome }) => outcome.kind === kind).length;
  return `${count('connected')} connected, ${count('failed')} failed, ${count('skipped')} skipped`;
}

/** @param commands what was asked of each host, in Markdown, by its title */
export function renderPage(
  results: readonly Result[],
  commands: ReadonlyMap<string, string>,
  { date, version }: { readonly date: string; readonly version: string },
): string {
  const rows = results.map((result) => [
    hostOf(result),
    CARRIER_TITLES[result.carrier],
    result.configuredBy === '' ? '–' : result.configuredBy,
    describe(result.outcome),
    result.outcome.kind === 'connected' ? clientOf(result.outcome.client) : '–',
    result.outcome.kind === 'connected' ? result.outcome.client.revision : '–',
  ]);
  const asked = [...commands].map(([host, command]) => `- ${host}: ${command}`);
  return `# Hosts that were tried

Made by \`npm run hosts -- --write\` on ${date} with mcp-portage ${version}; do not edit.

Real hosts, as the npm registry has them, were told about a published server that mcp-portage serves, by exactly what
\`mcp-portage snippet\` prints for them. Then each was asked, by a command of its own that needs no model, whether it
reaches the server. "Connected" means that the host says so and that mcp-portage saw it on the transport that was meant.
They ran without a network, so nothing but the loopback interface was reached, and with an empty home. Settings stood in
for a user who approves the project's servers in Claude Code and trusts the folder in Gemini CLI. Copilot CLI was given a
model that cannot be reached, so that it connects without a login.

${table(['Host', 'Over', 'Configured by', 'What it said', 'Client that it names', 'Revision'], rows)}

What each was asked:

${asked.join('\n')}

\`codex mcp list\` and \`copilot mcp list\` only show what is configured, so Codex was asked as an editor asks it, and
Copilot CLI got a prompt. Over \`connect\` the revision is the one that mcp-portage saw behind it. What some hosts call themselves here is what their list
command announces; in a conversation the name may be another one.
`;
}

/** The version is empty where the host could not be had. */
function hostOf({ host, hostVersion }: Result): string {
  return `${host} ${hostVersion}`.trimEnd();
}

function clientOf({ name, version }: SeenClient): string {
  return `${name} ${version}`;
}

function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'connected':
      return /connected/i.test(outcome.words) ? 'connected' : `connected: ${outcome.words}`;
    case 'failed':
      return `failed: ${outcome.words}`;
    case 'skipped':
      return `skipped: ${outcome.reason}`;
  }
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
