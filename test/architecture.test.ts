import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

/** Which folder (or file) of src/ may import which; docs/internals/architecture.md says why. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'printable.ts': [],
  'errors.ts': ['printable.ts', 'mcp/vocabulary/rpc-codes.ts'],
  'deps.ts': [],
  config: [],
  'config.ts': ['config'],
  'version.ts': [],
  'snippet.ts': ['process/shown-arguments.ts'],
  'suggest.ts': [],
  'log-lines.ts': ['printable.ts', 'process/command-name.ts'],
  'log.ts': ['config.ts', 'io', 'log-lines.ts', 'printable.ts', 'version.ts'],
  collections: [],
  wire: ['errors.ts'],
  mcp: ['wire', 'errors.ts'],
  observe: [
    'relay/observer.ts',
    'relay/tracer.ts',
    'recording/recorded-message.ts',

    'collections',
    'mcp',
    'wire',
    'io',
    'http',
    'printable.ts',
    'probe/render-report.ts',
    'errors.ts',
    'deps.ts',
    'config/observation.ts',
    'version.ts',
  ],
  replicas: [
    'collections',
    'relay',
    'wire',
    'mcp',
    'http',
    'downstream/placement.ts',
    'downstream/listener/http-server.ts',
    'upstream/stdio/child-limit.ts',
    'observe/usage',
    'observe/status/other-replicas.ts',
    'errors.ts',
    'deps.ts',
    'config/cluster.ts',
    'config/server.ts',
  ],
  relay: ['collections', 'wire', 'mcp', 'errors.ts', 'deps.ts'],
  eras: ['relay', 'collections', 'mcp', 'wire', 'errors.ts', 'deps.ts'],
  aggregate: ['relay', 'collections', 'mcp', 'wire', 'errors.ts', 'deps.ts', 'suggest.ts', 'version.ts'],
  http: ['io', 'printable.ts', 'wire', 'collections', 'mcp', 'errors.ts', 'deps.ts', 'config'],
  grpc: ['wire', 'errors.ts'],
  io: ['wire', 'deps.ts'],
  mqtt: ['collections', 'http/client', 'io', 'mcp', 'wire', 'config', 'printable.ts', 'errors.ts', 'deps.ts'],
  pins: [
    'upstream/connection.ts',
    'relay/ports.ts',
    'relay/call.ts',
    'relay/tool-view.ts',
    'collections',
    'mcp',
    'wire',
    'io',
    'process/shown-arguments.ts',
    'printable.ts',
    'errors.ts',
    'deps.ts',
  ],
  process: ['printable.ts', 'wire', 'errors.ts', 'deps.ts'],
  recording: [
    'relay',
    'collections',
    'mcp',
    'wire',
    'http/headers.ts',
    'http/server/respond.ts',
    'errors.ts',
    'deps.ts',
  ],
  downstream: [
    'relay',
    'mqtt',
    'printable.ts',
    'collections',
    'io',
    'mcp',
    'wire',
    'http',
    'grpc',
    'errors.ts',
    'deps.ts',
    'config',
  ],
  watch: ['printable.ts', 'deps.ts', 'config'],
  upstream: [
    'printable.ts',
    'recording/recorded-message.ts',
    'suggest.ts',
    'mqtt',
    'relay/ports.ts',
    'relay/readiness.ts',
    'relay/call.ts',
    'relay/call-over-link.ts',
    'relay/message-tap.ts',
    'relay/modern-call.ts',
    'relay/observer.ts',
    'relay/log-failure.ts',
    'relay/sessions/restore-session.ts',
    'relay/sessions/session-state.ts',
    'relay/dialer-adapters.ts',
    'relay/tool-catalog.ts',
    'collections',
    'mcp',
    'wire',
    'http',
    'grpc',
    'io',
    'process',
    'errors.ts',
    'deps.ts',
    'config',
  ],
  probe: [
    'printable.ts',
    'mqtt/show-address.ts',
    'upstream',
    'relay/ports.ts',
    'relay/observer.ts',
    'mcp',
    'wire',
    'http',
    'process',
    'errors.ts',
    'deps.ts',
    'config',
    'config.ts',
    'version.ts',
  ],
  bridge: [
    'aggregate',
    'downstream',
    'replicas',
    'upstream',
    'eras',
    'pins',
    'recording',
    'watch',
    'relay',
    'mqtt',
    'mcp',
    'http',
    'process/command-name.ts',
    'observe',
    'snippet.ts',
    'collections',
    'errors.ts',
    'deps.ts',
    'config',
    'config.ts',
    'version.ts',
  ],
  'bridge.ts': ['bridge', 'deps.ts', 'config.ts'],
  cli: [
    '../docs/reference/errors.md',
    'printable.ts',
    'pins',
    'io/bounded-file.ts',
    'snippet.ts',
    'suggest.ts',
    'observe/usage/report-command.ts',
    'observe/usage/fetch-usage.ts',
    'observe/top/run-top.ts',
    'observe/top/terminal-screen.ts',
    'observe/view/run-view.ts',
    'http/addresses.ts',
    'http/socket-addresses.ts',
    'http/server/listen-addresses.ts',
    'http/client/credentials.ts',
    'http/server/certificate-files.ts',
    'http/headers.ts',
    'http/client/agents.ts',
    'process/command-name.ts',
    'http/websocket/url.ts',
    'mqtt/names.ts',
    'process/shown-arguments.ts',
    'errors.ts',
    'config',
    'config.ts',
    'deps.ts',
    'version.ts',
    'log.ts',
  ],
  library: [
    'bridge',
    'bridge.ts',
    'probe',
    'cli/options',
    'cli/parse',
    'cli/config-file',
    'io/bounded-file.ts',
    'cli/check-files.ts',
    'cli/system-deps.ts',
    'http/server',
    'observe/inspection.ts',
    'relay/observer.ts',
    'errors.ts',
    'deps.ts',
    'config.ts',
  ],
  'library.ts': ['library', 'probe/report.ts', 'errors.ts'],
  'program.ts': ['cli.ts', 'library.ts'],
  start: [],
  'start.ts': ['start', 'version.ts'],
  'cli.ts': [
    'printable.ts',
    'snippet.ts',
    'cli',
    'bridge.ts',
    'probe',
    'log.ts',
    'errors.ts',
    'config.ts',
    'version.ts',
  ],
};

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../src');

interface Import {
  readonly from: string;
  readonly to: string;
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

function importsOf(file: string): readonly Import[] {
  const text = readFileSync(file, 'utf8');
  const found = [...text.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)];
  return found.map((match) => ({
    from: relative(root, file),
    to: relative(root, resolve(dirname(file), match[1] as string)),
  }));
}

function folderOf(path: string): string {
  return path.split('/')[0] as string;
}

function isAllowed({ from, to }: Import): boolean {
  if (folderOf(from) === folderOf(to)) return true;
  return (ALLOWED[folderOf(from)] ?? []).some((allowed) => to === allowed || to.startsWith(`${allowed}/`));
}

const files = filesBelow(root);
const imports = files.flatMap(importsOf);

test('every file of src/ lies in a folder that the rules know', (t) => {
  t.deepEqual(
    [...new Set(files.map((file) => folderOf(relative(root, file))))].filter((folder) => !(folder in ALLOWED)),
    [],
  );
});

test('a folder imports only what the rules allow it', (t) => {
  t.true(imports.length > 100, 'the scan finds the imports');
  t.deepEqual(
    imports.filter((found) => !isAllowed(found)).map(({ from, to }) => `${from} → ${to}`),
    [],
  );
});

/** Folders beside each other that build on each other in one direction only: none imports from one further right. */
const ORDERS: readonly (readonly string[])[] = [
  ['mcp/vocabulary', 'mcp/classify', 'mcp/translate'],
  ['wire/json', 'wire'],
  ['http/client', 'http/login'],
  ['http/server', 'http/auth'],
  ['replicas/store', 'replicas/ownership', 'replicas/stored'],
  ['replicas/store', 'replicas/ownership', 'replicas/limits'],
  ['replicas/ownership', 'replicas/forwarding'],
];
/** Folders beside each other that know nothing of each other. */
const UNRELATED: readonly (readonly [string, string])[] = [
  ['http/client', 'http/server'],
  ['http/login', 'http/server'],
  ['eras/modern-to-legacy', 'eras/legacy-to-modern'],
];

for (const order of ORDERS) {
  test(`folders build on each other in one direction: ${order.join(' → ')}`, (t) => {
    const placeOf = (path: string): number => order.findIndex((folder) => path.startsWith(`${folder}/`));
    t.deepEqual(
      imports
        .filter(({ from, to }) => placeOf(from) !== -1 && placeOf(to) > placeOf(from))
        .map(({ from, to }) => `${from} → ${to}`),
      [],
    );
  });
}

for (const [one, other] of UNRELATED) {
  test(`${one} and ${other} know nothing of each other`, (t) => {
    const isIn = (folder: string, path: string): boolean => path.startsWith(`${folder}/`);
    t.true([one, other].every((folder) => imports.some(({ from }) => isIn(folder, from))));
    t.deepEqual(
      imports.filter(({ from, to }) => (isIn(one, from) && isIn(other, to)) || (isIn(other, from) && isIn(one, to))),
      [],
    );
  });
}

test('no files import each other in a circle, be it for types only', (t) => {
  const needed = new Map(files.map((file) => [relative(root, file), importsOf(file).map(({ to }) => to)]));
  const done = new Set<string>();
  const findCircle = (file: string, above: readonly string[]): readonly string[] | undefined => {
    if (above.includes(file)) return [...above.slice(above.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of needed.get(file) ?? []) {
      const circle = findCircle(next, [...above, file]);
      if (circle !== undefined) return circle;
    }
    done.add(file);
    return undefined;
  };
  t.true([...needed.values()].flat().length > 100, 'the scan finds the imports');
  t.deepEqual(
    [...needed.keys()].flatMap((file) => findCircle(file, [])?.join(' → ') ?? []),
    [],
  );
});

test('no file of src/ ends the process but the command line', (t) => {
  const ending = files.filter((file) => /process\.exit\(/.test(readFileSync(file, 'utf8')));
  t.deepEqual(
    ending.map((file) => relative(root, file)),
    ['cli.ts'],
  );
});

test('nothing in src/ writes to stdout but the command line and its start: stdout belongs to the protocol', (t) => {
  const writing = files.filter((file) => /console\.|process\.stdout/.test(readFileSync(file, 'utf8')));
  t.deepEqual(
    writing.map((file) => relative(root, file)),
    ['cli.ts', 'start.ts'],
  );
});

test('protocol dates stand in mcp/ only', (t) => {
  const dated = files.filter((file) => {
    const code = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    return !relative(root, file).startsWith('mcp/') && /20\d\d-\d\d-\d\d/.test(code);
  });
  t.deepEqual(
    dated.map((file) => relative(root, file)),
    [],
  );
});
