/** Gauges for the state of the bridge and of each server, read at the time of a scrape. */
import type { InspectedServer, Inspection, ServerState } from '../inspection.ts';
import { labelOfRevision } from './bounded-labels.ts';
import { type Family, type LabelText, writeLabels, writeSample } from './families.ts';

const STATES: readonly ServerState[] = ['not-started', 'starting', 'ready', 'failing', 'stopped'];
/** States in which a call would be served, as far as is known. */
const UP: ReadonlySet<ServerState> = new Set(['not-started', 'starting', 'ready']);

type Sample = readonly [labels: LabelText, value: number];

/** Creates the gauges. A server that is no longer served has none. */
export function inspectedGauges({ servers, ...bridge }: Inspection): readonly Family[] {
  const one = (name: string, help: string, value: number, labels: LabelText = ''): Family =>
    gauge(name, help, () => [writeSample(`mcp_portage_${name}`, labels, value)]);
  const each = (name: string, help: string, samplesOf: (server: InspectedServer) => readonly Sample[]): Family =>
    gauge(name, help, () => samplesOfAll(`mcp_portage_${name}`, servers, samplesOf));
  const count = (name: string, help: string, countOf: (server: InspectedServer) => number): Family =>
    each(name, help, (server) => [[serverLabel(server), countOf(server)]]);
  const version = writeLabels({ version: bridge.version });
  return [
    one('info', 'Always 1; the label has the version of mcp-portage.', 1, version),
    one('start_time_seconds', 'When the bridge started, in seconds since the epoch.', bridge.startedAtMs / 1000),
    one('open_calls_limit', 'Calls of all servers that may be open (--max-in-flight).', bridge.maxOpenCalls),
    one('processes_limit', 'Processes of all servers that may run (--max-children).', bridge.maxProcesses),
    each('server_up', '1: clients can be served as far as is known.', ({ name: server, kind, state }) => [
      [writeLabels({ server, kind }), UP.has(state) ? 1 : 0],
    ]),
    each('server_state', '1 for the state that the server is in.', ({ name: server, state }) =>
      STATES.map((other) => [writeLabels({ server, state: other }), other === state ? 1 : 0]),
    ),
    each(
      'server_speaks',
      'Always 1; the labels say what has been found out that the server speaks.',
      ({ name: server, verdicts }) =>
        verdicts.map(({ transport, era, revision }) => {
          const found = revision === undefined ? undefined : labelOfRevision(revision);
          return [writeLabels({ server, transport, server_era: era, mcp_protocol_version: found }), 1];
        }),
    ),
    count('sessions', 'Sessions of clients that are open.', ({ sessions }) => sessions),
    count('open_calls', 'Calls that wait for an answer.', ({ openCalls }) => openCalls),
    count('processes', 'Processes that run, those that are ending included.', ({ processes }) => processes),
    one('connections', 'Connections of clients.', bridge.connections),
    one('unsent_bytes', 'Bytes of answers and streams that clients have not taken yet.', bridge.unsentBytes),
    each('queue_items', 'What waits or is kept, by queue.', (server) => ofQueues(server, 'items')),
    each('queue_bytes', 'Bytes of what waits or is kept, by queue.', (server) => ofQueues(server, 'bytes')),
    {
      ...count(
        'restarts_total',
        'Server processes that exited by themselves, or were ended because they hung.',
        ({ restarts }) => restarts,
      ),
      type: 'counter',
    },
  ];
}

function gauge(name: string, help: string, series: () => Iterable<string>): Family {
  return { name: `mcp_portage_${name}`, help, type: 'gauge', series };
}

function* samplesOfAll(
  name: string,
  servers: readonly InspectedServer[],
  samplesOf: (server: InspectedServer) => readonly Sample[],
): Iterable<string> {
  for (const server of servers) {
    for (const [labels, value] of samplesOf(server)) yield writeSample(name, labels, value);
  }
}

function serverLabel({ name: server }: InspectedServer): LabelText {
  return writeLabels({ server });
}

function ofQueues({ name: server, queues }: InspectedServer, what: 'items' | 'bytes'): readonly Sample[] {
  return queues.flatMap(({ queue, [what]: size }): readonly Sample[] =>
    size === undefined ? [] : [[writeLabels({ server, queue }), size]],
  );
}
