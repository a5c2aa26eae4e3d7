/** The generated parts of docs/reference/compatibility.md, of the data that the matrix of tests runs on. */
import { CLIENT_NAMES, CLIENTS, type ClientName } from '../test/matrix/clients.ts';
import { crossingOf, FEATURE_NAMES, FEATURES, type Outcome } from '../test/matrix/features.ts';
import { FURTHER_FEATURES } from '../test/matrix/further-features.ts';
import { LIMITS, type Limit } from '../test/matrix/limits.ts';
import { SERVER_NAMES, SERVERS, type ServerName } from '../test/matrix/servers.ts';

/** By the name of the part. */
export const COMPATIBILITY_PARTS: Readonly<Record<string, () => string>> = {
  pairs: renderPairs,
  'modern-to-legacy': () => renderCrossing('modern → legacy'),
  'legacy-to-modern': () => renderCrossing('legacy → modern'),
  'same-era': renderSameEra,
  limits: renderLimits,
};

type Row = readonly string[];

function renderTable(heads: Row, rows: readonly Row[]): string {
  const line = (cells: Row) => `| ${cells.join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function renderPairs(): string {
  const rows = SERVER_NAMES.map((server) => [
    `**${SERVERS[server].title}**`,
    ...CLIENT_NAMES.map((client) => renderPair(client, server)),
  ]);
  return renderTable(['server ↓ client →', ...CLIENT_NAMES.map((client) => CLIENTS[client].title)], rows);
}

function renderPair(client: ClientName, server: ServerName): string {
  const verdict = CLIENTS[client].era === SERVERS[server].era ? 'passes' : 'translated';
  const notes = LIMITS.flatMap((limit, index) => (concerns(limit, client, server) ? [index + 1] : []));
  return notes.length === 0 ? verdict : `${verdict} (${notes.join(', ')})`;
}

const concerns = ({ clients, servers }: Limit, client: ClientName, server: ServerName): boolean =>
  servers.includes(server) && (clients?.includes(client) ?? true);

function renderCrossing(crossing: 'modern → legacy' | 'legacy → modern'): string {
  const all = [...FEATURE_NAMES.map((feature) => FEATURES[feature]), ...FURTHER_FEATURES];
  const rows = all.map(({ title, outcomes }) => {
    const outcome: Outcome = outcomes[crossing];
    return [title, VERDICTS[outcome.kind], explain(outcome)];
  });
  return renderTable(['', 'outcome', ''], rows);
}

const VERDICTS = {
  passes: 'passes',
  translated: 'translated',
  absent: 'not there',
  impossible: '**impossible**',
} as const;

function explain(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'passes':
      return '';
    case 'translated':
      return outcome.how;
    case 'absent':
      return outcome.why;
    case 'impossible':
      return `${outcome.why}; ${outcome.seen}`;
  }
}

/** All that is there passes, so what is not there is all there is to say. */
function renderSameEra(): string {
  const rows = FEATURE_NAMES.flatMap((feature) => {
    const { title, outcomes } = FEATURES[feature];
    const outcome: Outcome = outcomes[crossingOf('modern', 'modern')];
    return outcome.kind === 'passes' ? [] : [[title, explain(outcome)]];
  });
  return renderTable(['not there in the modern era', ''], rows);
}

function renderLimits(): string {
  const rows = LIMITS.map(({ clients, servers, features, why, seen }, index) => [
    String(index + 1),
    servers.length === SERVER_NAMES.length ? 'all' : servers.map((server) => SERVERS[server].title).join('; '),
    clients?.map((client) => CLIENTS[client].title).join('; ') ?? 'all',
    features.map((feature) => FEATURES[feature].title).join('; '),
    `${why}; ${seen}`,
  ]);
  return renderTable(['', 'servers', 'clients', 'what', 'why, and what each side sees'], rows);
}
