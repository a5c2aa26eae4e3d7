/** Chooses and orders what the tables of the terminal view list. */
import type { ServerState } from '../inspection.ts';
import type { ClientStatus, EndedCall, ServerStatus, StatusDocument } from '../status/status-document.ts';
import type { Sort, ViewState } from './view-state.ts';

export interface Listed {
  readonly servers: readonly ServerStatus[];
  readonly clients: readonly ClientStatus[];
  readonly calls: readonly EndedCall[];
}

/** Smaller numbers are listed first. */
const URGENCY: Readonly<Record<ServerState, number>> = {
  stopped: 0,
  failing: 1,
  starting: 2,
  ready: 3,
  'not-started': 4,
};

/**
 * Returns what is listed. With a filter, a call is listed if its tool, client or server contains the text; a client or
 * a server, if its own name does, or if something that is listed belongs to it.
 */
export function listedIn(status: StatusDocument, { filter, sort, order }: ViewState): Listed {
  const listed = filter === '' ? all(status) : matching(status, filter.toLowerCase());
  const servers = [...listed.servers].sort(COMPARE[sort]);
  return { ...listed, servers: order === 'usual' ? servers : servers.reverse() };
}

function all({ servers, clients, calls }: StatusDocument): Listed {
  return { servers, clients, calls: calls.recent };
}

function matching(status: StatusDocument, wanted: string): Listed {
  const has = (...names: readonly (string | null)[]): boolean =>
    names.some((name) => name?.toLowerCase().includes(wanted) === true);
  const calls = status.calls.recent.filter((call) => has(call.tool ?? call.method, call.client, call.server));
  const callers = new Set(calls.map(({ client, server }) => JSON.stringify([client, server])));
  const clients = status.clients.filter(
    ({ name, server }) => has(name, server) || callers.has(JSON.stringify([name, server])),
  );
  const used = new Set([...calls, ...clients].map(({ server }) => server));
  return { servers: status.servers.filter(({ name }) => has(name) || used.has(name)), clients, calls };
}

type Compare = (one: ServerStatus, other: ServerStatus) => number;

/** Servers that compare as equal stay in the order of the configuration. */
const COMPARE: Readonly<Record<Sort, Compare>> = {
  state: (one, other) => URGENCY[one.state] - URGENCY[other.state],
  name: (one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0),
  'open calls': (one, other) => other.openCalls - one.openCalls,
  'calls a minute': (one, other) => other.lastMinute.calls - one.lastMinute.calls,
  errors: (one, other) => other.lastMinute.errors - one.lastMinute.errors,
  p95: (one, other) => (other.lastMinute.p95Ms ?? -1) - (one.lastMinute.p95Ms ?? -1),
};
