/** The picture of the architecture: the folders of src/ and which imports which, read from the code. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { escapeXml, FONT, THEMES, type ThemeName } from './picture-themes.ts';

/** What each folder is for, in a few words. */
const PURPOSES: Readonly<Record<string, string>> = {
  aggregate: 'several servers as one',
  bridge: 'puts everything together',
  cli: 'options, files, help',
  collections: 'bounded queues and maps',
  config: 'what can be configured',
  downstream: 'transports to clients',
  eras: 'translates between eras',
  grpc: 'messages of gRPC',
  http: 'HTTP, logins, WebSocket',
  io: 'lines and files',
  library: 'the same for programs',
  mcp: 'what the protocol says',
  mqtt: 'a connection to a broker',
  observe: 'status, metrics, traces',
  pins: 'tools as they were accepted',
  probe: 'asks a server everything',
  process: 'child processes',
  recording: 'messages, in a file or live',
  relay: 'the engine',
  replicas: 'several bridges as one',
  start: 'loads compiled code',
  upstream: 'transports to servers',
  watch: 'notices changed files',
  wire: 'bytes and frames',
};

const WIDTH = 900;
const BOX = { width: 170, height: 46 } as const;
const LEVEL_HEIGHT = 84;
const TOP = 12;

type Edges = ReadonlyMap<string, ReadonlySet<string>>;

interface Place {
  readonly x: number;
  readonly y: number;
}

/** Which folder of src/ imports from which others. A file beside a folder of its name belongs to that folder. */
function readFolders(source: string): Edges {
  const edges = new Map<string, Set<string>>();
  const files = readdirSync(source, { recursive: true, withFileTypes: true });
  for (const file of files) {
    if (!file.isFile() || !file.name.endsWith('.ts')) continue;
    const path = join(file.parentPath, file.name);
    const from = folderOf(relative(source, path));
    if (from === undefined) continue;
    const needed = edges.get(from) ?? new Set();
    edges.set(from, needed);
    for (const [, to = ''] of readFileSync(path, 'utf8').matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)) {
      const folder = folderOf(relative(source, resolve(dirname(path), to)));
      if (folder !== undefined && folder !== from) needed.add(folder);
    }
  }
  return edges;
}

function folderOf(path: string): string | undefined {
  const [first = '', ...rest] = path.split(sep);
  // A document that the program quotes is no folder of src/.
  if (first === '..') return undefined;
  const name = rest.length > 0 ? first : first.replace(/\.ts$/, '');
  return name in PURPOSES ? name : rest.length > 0 ? unknown(name) : undefined;
}

function unknown(folder: string): never {
  throw new Error(`the picture of the folders does not say what src/${folder} is for`);
}

/** Leaves out what follows from other imports: of a → b → c the import a → c. */
function withoutImplied(edges: Edges): readonly (readonly [string, string])[] {
  const reaches = (from: string, to: string): boolean => {
    for (const next of edges.get(from) ?? []) if (next === to || reaches(next, to)) return true;
    return false;
  };
  return [...edges].flatMap(([from, needed]) =>
    [...needed]
      .filter((to) => ![...needed].some((other) => other !== to && reaches(other, to)))
      .map((to) => [from, to] as const),
  );
}

/** Folders in rows: each stands above all that it imports from. The lowest row comes first. */
function intoRows(edges: Edges): readonly (readonly string[])[] {
  const levelOf = (folder: string): number => {
    const below = [...(edges.get(folder) ?? [])].map(levelOf);
    return below.length === 0 ? 0 : 1 + Math.max(...below);
  };
  const rows: string[][] = [];
  for (const folder of [...edges.keys()].sort()) {
    const level = levelOf(folder);
    rows[level] = [...(rows[level] ?? []), folder];
  }
  return rows;
}

function placeAll(rows: readonly (readonly string[])[]): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  rows.forEach((row, level) => {
    const y = TOP + (rows.length - 1 - level) * LEVEL_HEIGHT;
    const step = WIDTH / row.length;
    row.forEach((folder, index) => {
      // Rows are shifted against each other, so that an arrow over several rows is seen between the boxes.
      const shift = row.length === 1 ? ((level % 2) - 0.5) * BOX.width * 1.3 : 0;
      places.set(folder, { x: step * (index + 0.5) + shift, y });
    });
  });
  return places;
}

/** @param source the path of src/ */
export function renderFolders(name: ThemeName, source: string): string {
  const theme = THEMES[name];
  const edges = readFolders(source);
  const rows = intoRows(edges);
  const places = placeAll(rows);
  const placeOf = (folder: string): Place => places.get(folder) ?? { x: 0, y: 0 };
  const height = TOP + (rows.length - 1) * LEVEL_HEIGHT + BOX.height + TOP;
  const arrows = withoutImplied(edges).map(([from, to]) => arrow(placeOf(from), placeOf(to)));
  const boxes = [...places].map(([folder, { x, y }]) => {
    const purpose = PURPOSES[folder] ?? unknown(folder);
    return `<rect x="${x - BOX.width / 2}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6" fill="${theme.box}" stroke="${theme.line}"/><text x="${x}" y="${y + 20}" text-anchor="middle" font-size="14" font-weight="600" fill="${theme.text}">${escapeXml(folder)}</text><text x="${x}" y="${y + 36}" text-anchor="middle" font-size="12" fill="${theme.faint}">${escapeXml(purpose)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" ${FONT}>
<title>The folders of src/, each above those that it imports from</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="${theme.line}"/></marker></defs>
<g fill="none" stroke="${theme.line}" stroke-width="1.5" marker-end="url(#tip)">
${arrows.join('\n')}
</g>
${boxes.join('\n')}
</svg>
`;
}

function arrow(from: Place, to: Place): string {
  const startY = from.y + BOX.height;
  const bend = (startY + to.y) / 2;
  return `<path marker-end="url(#tip)" d="M${round(from.x)} ${startY}C${round(from.x)} ${bend} ${round(to.x)} ${bend} ${round(to.x)} ${to.y}"/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
