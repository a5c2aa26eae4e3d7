/** The generated parts of docs/reference/compatibility.md, of the data that the matrix of tests runs on. */
import { CLIENTS, type ClientName } from '../test/matrix/clients.ts';
import { FEATURE_NAMES, FEATURES, type Outcome } from '../test/matrix/features.ts';
import { FURTHER_FEATURES } from '../test/matrix/further-features.ts';
import { LIMITS, type Limit } from '../test/matrix/limits.ts';
import { SERVERS, type ServerName } from '../test/matrix/servers.ts';

/** By the name of the part. */
export const COMPATIBILITY_PARTS: Readonly<Record<string, () => string>> = {
  pairs: () => `${renderPairs()}\n\n${renderLimits()}`,
  features: () => `${renderAlike()}\n\n${renderFeatures()}`,
};

/** The columns of the table of pairs: clients that differ in nothing that the table says. */
export const CLIENT_GROUPS: Readonly<Record<string, readonly ClientName[]>> = {
  'legacy, stdio': ['stdio', 'stream', 'webSocket', 'grpc'],
  'legacy, HTTP': ['httpSse', 'streamable', 'socket'],
  'legacy, MQTT': ['mqtt'],
  'modern, stdio': ['modernStdio', 'autoStdio'],
  'modern, HTTP': ['modernHttp', 'modernSocket', 'autoHttp', 'modernWebSocket', 'modernGrpc', 'modernMqtt'],
};

/** The rows of the table of pairs. A note may be about some servers of a row only; the notes name them. */
export const SERVER_GROUPS: Readonly<Record<string, readonly ServerName[]>> = {
  'legacy, stdio': ['stdio', 'stream', 'webSocket', 'grpc', 'mqtt'],
  'legacy, HTTP': ['httpSse', 'stateful', 'resumable', 'json', 'stateless', 'statelessJson', 'socket'],
  'modern, stdio': ['modernStdio', 'modernStream', 'modernWebSocket', 'modernGrpc', 'modernMqtt'],
  'modern, HTTP': ['modernHttp', 'modernSocket'],
};

export function concerns({ clients, servers }: Limit, client: ClientName, server: ServerName): boolean {
  return servers.includes(server) && (clients?.includes(client) ?? true);
}

type Row = readonly string[];

function renderTable(heads: Row, rows: readonly Row[]): string {
  const line = (cells: Row) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function renderPairs(): string {
  const rows = Object.entries(SERVER_GROUPS).map(([title, servers]) => [
    `**${title}**`,
    ...Object.values(CLIENT_GROUPS).map((clients) => renderPair(clients, servers)),
  ]);
  return renderTable(['server ↓ client →', ...Object.keys(CLIENT_GROUPS)], rows);
}

function renderPair(clients: readonly ClientName[], servers: readonly ServerName[]): string {
  const pairs = clients.flatMap((client) => servers.map((server) => ({ client, server })));
  const isSameEra = pairs.every(({ client, server }) => CLIENTS[client].era === SERVERS[server].era);
  const notes = LIMITS.flatMap((limit, index) =>
    pairs.some(({ client, server }) => concerns(limit, client, server)) ? [index + 1] : [],
  );
  const verdict = isSameEra ? 'passes' : 'translated';
  return notes.length === 0 ? verdict : `${verdict} (${inRanges(notes)})`;
}

/** `1, 3–5` */
function inRanges(numbers: readonly number[]): string {
  const isFirst = (number: number) => !numbers.includes(number - 1);
  const endOf = (number: number): number => (numbers.includes(number + 1) ? endOf(number + 1) : number);
  const ranges = numbers.filter(isFirst).map((first) => [first, endOf(first)] as const);
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(', ');
}

function renderLimits(): string {
  return LIMITS.map(({ of, clients = [], servers, features, why, seen }, index) => {
    const titles =
      of === 'clients'
        ? clients.map((client) => `Clients over ${CLIENTS[client].title}`)
        : servers.map((server) => SERVERS[server].title);
    const kinds = titles.filter((title) => !titles.some((other) => title.startsWith(`${other},`)));
    const missing = features.map((feature) => uncapitalized(FEATURES[feature].title)).join('; ');
    return `${index + 1}. **${kinds.join('; ')}**: ${missing}. ${capitalized(why)}: ${seen}.`;
  }).join('\n');
}

/** Names such as MCP stay as they are. */
function uncapitalized(text: string): string {
  return text.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

interface Crossed {
  readonly title: string;
  readonly modernToLegacy: Outcome;
  readonly legacyToModern: Outcome;
}

function crossedFeatures(): readonly Crossed[] {
  const ofMatrix = FEATURE_NAMES.map((feature) => {
    const { title, outcomes } = FEATURES[feature];
    const isLegacyOnly = (outcomes['modern → modern'] satisfies Outcome).kind !== 'passes';
    return { title: isLegacyOnly ? `${title} †` : title, outcomes };
  });
  return [...ofMatrix, ...FURTHER_FEATURES].map(({ title, outcomes }) => ({
    title,
    modernToLegacy: outcomes['modern → legacy'],
    legacyToModern: outcomes['legacy → modern'],
  }));
}

/** Nothing has to be said of how the feature crosses, in either direction. */
function isAlike({ modernToLegacy, legacyToModern }: Crossed): boolean {
  return [modernToLegacy, legacyToModern].every(
    (outcome) => outcome.kind === 'translated' && outcome.how === undefined,
  );
}

function renderAlike(): string {
  const titles = crossedFeatures().filter(isAlike);
  return `Translated, without a difference that either side notices: ${titles.map(({ title }) => uncapitalized(title)).join('; ')}.`;
}

function renderFeatures(): string {
  const rows = crossedFeatures()
    .filter((feature) => !isAlike(feature))
    .map(({ title, modernToLegacy, legacyToModern }) => [title, describe(modernToLegacy), describe(legacyToModern)]);
  return renderTable(['Feature', 'Modern client, legacy server', 'Legacy client, modern server'], rows);
}

function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'passes':
      return 'passes';
    case 'translated':
      return outcome.how ?? 'translated';
    case 'absent':
      return '–';
    case 'impossible':
      return `**impossible**: ${outcome.why}; ${outcome.seen}`;
  }
}
