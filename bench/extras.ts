/** What is measured besides calls: starting, opening sessions, memory, and how cost grows. */
import { startHttpEndpoint, startStdioEndpoint } from './bridges/endpoint.ts';
import { asFirst, floor, mcpProxy, portage, stdioServer, supergateway } from './bridges/programs.ts';
import { CONNECT, type Contender, type Entrant, LISTED_ENTRANT, STREAMABLE } from './cases.ts';
import type { Program } from './measure/processes.ts';

const SERVER = ['node', ...stdioServer('legacy')];

function onHttp(name: Contender, program: (port: string) => Program, ids: Entrant['ids'] = 'own'): Entrant {
  const start = () =>
    startHttpEndpoint({ transport: 'streamable', path: '/mcp', program: (port) => program(String(port)) });
  return { name, ids, start };
}

/** Enough for what is opened here; the default is for one user's machine. */
const MANY = ['--max-sessions', '4000'];

const SHARING: readonly Entrant[] = [
  onHttp('floor-shared', (port) => floor('http', port, 'shared', ...SERVER), 'common'),
  onHttp('mcp-portage-shared', (port) => portage('--port', port, '--isolation', 'shared', ...MANY, '--', ...SERVER)),
  onHttp('mcp-proxy', (port) => mcpProxy('--host', '127.0.0.1', '--port', port, '--', ...SERVER)),
];

/**
 * - `open`: sessions one after the other.
 * - `open-apart`: with so long a pause before each that a process that is started ahead of it is ready.
 */
export type OpeningWorkload = 'open' | 'open-apart';

export interface Opener {
  readonly entrant: Entrant;
  readonly workload: OpeningWorkload;
  /** Many where they share a child, few where each starts one. */
  readonly sessions: number;
  /** Children that have to wait before each session is opened. */
  readonly prewarmed: number;
}

const PREWARMED = 4;
const SUPERGATEWAY = onHttp('supergateway', (port) =>
  supergateway('--stdio', SERVER.join(' '), '--outputTransport', 'streamableHttp', '--stateful', '--port', port),
);
const few = { sessions: 10, prewarmed: 0 } as const;

export const OPENERS: readonly Opener[] = [
  ...SHARING.map((entrant) => ({ entrant, workload: 'open', sessions: 100, prewarmed: 0 }) as const),
  ...[
    onHttp('floor', (port) => floor('http', port, 'session', ...SERVER)),
    onHttp('mcp-portage', (port) => portage('--port', port, '--', ...SERVER)),
    SUPERGATEWAY,
  ].map((entrant) => ({ entrant, workload: 'open', ...few }) as const),
  ...[...SHARING, SUPERGATEWAY].map((entrant) => ({ entrant, workload: 'open-apart', ...few }) as const),
  {
    entrant: onHttp('mcp-portage-prewarmed', (port) =>
      portage('--port', port, '--prewarm', String(PREWARMED), '--', ...SERVER),
    ),
    workload: 'open-apart',
    sessions: 10,
    prewarmed: PREWARMED,
  },
];

const except = (entrants: readonly Entrant[], ...names: Contender[]): Entrant[] =>
  entrants.filter(({ name }) => !names.includes(name));

/** Beside those that are started again and again, as they are by their users. */
const FIRST = onHttp('mcp-portage-first', (port) => asFirst(portage('--port', port, '--', ...SERVER)));
const FIRST_CONNECT: Entrant = {
  ...FIRST,
  start: ({ port }) => startStdioEndpoint(asFirst(portage('connect', `http://127.0.0.1:${port}/mcp`))),
};

/** Cold starts: the time and processor time from its spawn to its first answer. */
export const STARTS = [
  {
    name: 'start',
    title: 'cold start, Streamable HTTP → stdio',
    entrants: [...except(STREAMABLE.entrants, 'direct'), FIRST, LISTED_ENTRANT],
  },
  {
    name: 'start-connect',
    title: 'cold start, connect',
    entrants: [...except(CONNECT.entrants, 'direct'), FIRST_CONNECT],
  },
] as const;

/** Memory of a bridge that serves one session, and of one that serves many on one child. */
export const IDLE = [...except(STREAMABLE.entrants, 'direct', 'mcp-portage-shared'), LISTED_ENTRANT];
export const MANY_SESSIONS = { entrants: SHARING, counts: [1, 10, 100, 1000] } as const;

/** Memory over many calls; for the others it would take an hour. */
export const GROWTH = {
  entrants: except(STREAMABLE.entrants, 'direct', 'floor', 'supergateway', 'mcp-proxy'),
  calls: 500_000,
};
