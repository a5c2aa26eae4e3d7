/** What is made of what the bridge sees of clients and calls, as the configuration says. */

import type { SunsetConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import type { FoundRoute, OnRefused } from '../../downstream/listener/http-server.ts';
import { ClientLog } from '../../observe/client-log.ts';
import { joinObservers } from '../../observe/observers.ts';
import { SunsetLog } from '../../observe/sunset-log.ts';
import type { ServedEndpoint } from '../../observe/usage/usage.ts';
import type { UsageTable } from '../../observe/usage/usage-table.ts';
import { type Observer, type RefuseRequest, refuseUnclear } from '../../relay/observer.ts';
import type { Tracer } from '../../relay/tracer.ts';
import { VERSION } from '../../version.ts';
import type { BridgeDeps } from '../running-bridge.ts';

/** Paths of routes, and what is served there. */
export type Routes = readonly (readonly [path: string, route: FoundRoute])[];

/** One thing that looks at calls; what it does not need it leaves to `NOTHING`. */
export interface ObservingPart {
  readonly observer: Observer | undefined;
  /** What there is to look at. */
  readonly routes: Routes;
  /** Says why this request is not taken now, or undefined where it is; undefined itself: it never refuses any. */
  readonly refusal: RefuseRequest | undefined;
  /** A request was refused before anything was asked of a server; undefined: that is of no interest here. */
  readonly onRefused: OnRefused | undefined;
  /** Clients find the servers here from now on. */
  serves(endpoints: readonly ServedEndpoint[]): void;
  /** A file that is written may have been moved away. */
  reopen(): void;
  /** Ends what others still look at. */
  endWatching(): void;
  /** Writes what is left to write. Never rejects. */
  close(): Promise<void>;
}

const NOTHING: ObservingPart = {
  observer: undefined,
  routes: [],
  refusal: undefined,
  onRefused: undefined,
  serves: () => undefined,
  reopen: () => undefined,
  endWatching: () => undefined,
  close: async () => undefined,
};

/** A part that others look at. */
export type Looking = Pick<ObservingPart, 'observer' | 'routes' | 'endWatching'> &
  Partial<Pick<ObservingPart, 'onRefused'>>;

export type Observation = Omit<ObservingPart, 'routes'> & {
  readonly routes: ReadonlyMap<string, FoundRoute>;
  /** Joins calls with traces; undefined: calls are not traced. */
  readonly tracer: Tracer | undefined;
};

export interface ObservationRequest {
  readonly config: ObservationConfig;
  readonly clients: 'several' | 'one';
  /** When HTTP+SSE ends; undefined: it does not, or is not served. */
  readonly sunset: SunsetConfig | undefined;
  /** Makes what people look at; given what is counted, if it is. */
  readonly look: (counted: Counted) => Promise<readonly Looking[]>;
  readonly deps: BridgeDeps;
}

/** What is counted of the usage; undefined: it is not. */
export type Counted = UsageTable | undefined;

/** Each part is loaded where it is wanted. */
export async function createObservation(request: ObservationRequest): Promise<Observation> {
  const { log } = request.deps;
  const usage = await countUsage(request);
  const looking = (await request.look(usage?.table)).map((part) => ({ ...NOTHING, ...part }));
  const traces = await traceCalls(request);
  const parts = [
    logClients(request),
    logSunset(request),
    usage?.part ?? NOTHING,
    await writeAudit(request),
    ...looking,
  ];
  const observers = [...parts.flatMap(({ observer }) => observer ?? []), ...request.deps.observers];
  return {
    observer: joinObservers(observers, (err) => log.error({ err }, 'an observer failed')),
    tracer: traces?.tracer,
    routes: new Map(parts.flatMap(({ routes }) => routes)),
    refusal: firstOf(parts.flatMap(({ refusal }) => refusal ?? [])),
    onRefused: parts.find(({ onRefused }) => onRefused !== undefined)?.onRefused,
    serves: (endpoints) => each(parts, (part) => part.serves(endpoints)),
    reopen: () => each(parts, (part) => part.reopen()),
    endWatching: () => each(parts, (part) => part.endWatching()),
    close: async () => void (await Promise.all([...parts, ...(traces ? [traces] : [])].map((part) => part.close()))),
  };
}

function firstOf(refusals: readonly RefuseRequest[]): RefuseRequest | undefined {
  if (refusals.length === 0) return undefined;
  return (request) => {
    for (const refusal of refusals) {
      const error = refusal(request);
      if (error !== undefined) return error;
    }
    return undefined;
  };
}

function each(parts: readonly ObservingPart[], use: (part: ObservingPart) => void): void {
  for (const part of parts) use(part);
}

function logClients({ clients, deps: { log, clock } }: ObservationRequest): ObservingPart {
  // Whoever starts a program to connect one client knows when that comes.
  return log.isLevelEnabled(clients === 'one' ? 'debug' : 'info')
    ? { ...NOTHING, observer: new ClientLog({ log, clock }) }
    : NOTHING;
}

function logSunset({ sunset, deps }: ObservationRequest): ObservingPart {
  if (sunset === undefined || !deps.log.isLevelEnabled('warn')) return NOTHING;
  const observer = new SunsetLog({ ...deps, sunset });
  return { ...NOTHING, observer, close: async () => observer.close() };
}

async function countUsage({ config, deps }: ObservationRequest) {
  const { usage } = config;
  if (usage === undefined) return undefined;
  const [{ UsageTable }, { UsageFile }] = await Promise.all([
    import('../../observe/usage/usage-table.ts'),
    import('../../observe/usage/usage-file.ts'),
  ]);
  const table = new UsageTable({ wallClock: deps.wallClock, served: [] });
  const { stateDirectory } = usage;
  const file = stateDirectory && new UsageFile({ table, stateDirectory, deps });
  const part: ObservingPart = {
    ...NOTHING,
    observer: table,
    serves: (endpoints) => table.serve(endpoints),
    close: async () => void (file && (await file.close())),
  };
  return { table, part };
}

async function writeAudit({ config: { audit }, deps }: ObservationRequest): Promise<ObservingPart> {
  if (audit === undefined) return NOTHING;
  const { openAuditFile } = await import('../../observe/audit/audit-file.ts');
  const { clock, log } = deps;
  const file = await openAuditFile({ path: audit.file, clock, log });
  return {
    ...NOTHING,
    observer: file,
    refusal: (request) => refuseUnclear(request) ?? (audit.unwritable === 'refuses-calls' ? file.refusal() : undefined),
    reopen: () => void file.reopen(),
    close: () => file.close(),
  };
}

/** The libraries for it are large, and are read only here. */
async function traceCalls({ config: { traces }, deps: { log, clock } }: ObservationRequest) {
  if (traces === undefined) return undefined;
  const { startTraces } = await import('../../observe/traces/traces.ts');
  return startTraces({ ...traces, version: VERSION, log, clock });
}
