/** Creates the observers that the configuration asks for: logs, usage, audit, metrics, status and traces. */

import type { SunsetConfig } from '../../config/listener.ts';
import type { ObservationConfig } from '../../config/observation.ts';
import type { FoundRoute, OnRefused } from '../../downstream/listener/http-server.ts';
import { ClientLog } from '../../observe/client-log.ts';
import { joinObservers } from '../../observe/observers.ts';
import { RefusalLog } from '../../observe/refusal-log.ts';
import { SunsetLog } from '../../observe/sunset-log.ts';
import type { ServedEndpoint } from '../../observe/usage/usage.ts';
import type { UsageTable } from '../../observe/usage/usage-table.ts';
import type { MessageTaps } from '../../relay/message-tap.ts';
import { type Observer, type RefuseRequest, refuseUnclear, type ServerObserver } from '../../relay/observer.ts';
import type { Tracer } from '../../relay/tracer.ts';
import { VERSION } from '../../version.ts';
import type { BridgeDeps } from '../running-bridge.ts';
import { createRecording, type Recording } from './recording.ts';

/** Routes with their paths. */
export type Routes = readonly (readonly [path: string, route: FoundRoute])[];

/** A consumer of observed calls. Members that it does not need are those of `NOTHING`. */
export interface ObservingPart {
  readonly observer: Observer | undefined;
  /** Routes that show what was observed. */
  readonly routes: Routes;
  /**
   * Returns the error of a request that must be rejected now, or undefined; undefined itself: no request is ever
   * rejected.
   */
  readonly refusal: RefuseRequest | undefined;
  /** Called when a request was rejected before it reached a server; undefined: not needed. */
  readonly onRefused: OnRefused | undefined;
  /** Returns the observer of the server with this name; undefined: nobody looks at single servers. */
  readonly observeServer: ((server: string) => ServerObserver) | undefined;
  /** Replaces the endpoints that are served. */
  serves(endpoints: readonly ServedEndpoint[]): void;
  /** Reopens a file, as it may have been moved away. */
  reopen(): void;
  /** Ends open event streams. */
  endWatching(): void;
  /** Writes remaining data. Never rejects. */
  close(): Promise<void>;
}

const NOTHING: ObservingPart = {
  observer: undefined,
  routes: [],
  refusal: undefined,
  onRefused: undefined,
  observeServer: undefined,
  serves: () => undefined,
  reopen: () => undefined,
  endWatching: () => undefined,
  close: async () => undefined,
};

/** A part with routes. */
export type Looking = Pick<ObservingPart, 'observer' | 'routes' | 'endWatching'> &
  Partial<Pick<ObservingPart, 'onRefused' | 'observeServer'>>;

export type Observation = Omit<ObservingPart, 'routes'> & {
  readonly routes: ReadonlyMap<string, FoundRoute>;
  /** Adds traces to calls; undefined: calls are not traced. */
  readonly tracer: Tracer | undefined;
  /** Returns what records the messages of the server with this name; undefined: nothing does. */
  readonly tapsOf: ((server: string) => MessageTaps) | undefined;
};

export interface ObservationRequest {
  readonly config: ObservationConfig;
  readonly clients: 'several' | 'one';
  /** Announced end of HTTP+SSE; undefined: none, or HTTP+SSE is not served. */
  readonly sunset: SunsetConfig | undefined;
  /** Creates the parts with routes. `counted` holds the usage, if it is counted; `feed` serves messages, if it may. */
  readonly look: (counted: Counted, feed: Recording['feed']) => Promise<readonly Looking[]>;
  readonly deps: BridgeDeps;
}

/** Recorded usage; undefined: it is not recorded. */
export type Counted = UsageTable | undefined;

/** Creates all parts. Each is loaded only if the configuration asks for it. */
export async function createObservation(request: ObservationRequest): Promise<Observation> {
  const { log } = request.deps;
  const recording = request.config.recording && (await createRecording(request.config.recording, request.deps));
  const usage = await countUsage(request);
  const looking = (await request.look(usage?.table, recording?.feed)).map((part) => ({ ...NOTHING, ...part }));
  const traces = await traceCalls(request);
  const parts = [
    logClients(request),
    logRefusals(request),
    logSunset(request),
    usage?.part ?? NOTHING,
    await writeAudit(request),
    { ...NOTHING, ...recording },
    ...looking,
  ];
  const observers = [...parts.flatMap(({ observer }) => observer ?? []), ...request.deps.observers];
  return {
    observer: joinObservers(observers, (err) => log.error({ err }, 'an observer failed')),
    tracer: traces?.tracer,
    tapsOf: recording?.tapsOf,
    routes: new Map(parts.flatMap(({ routes }) => routes)),
    refusal: firstOf(parts.flatMap(({ refusal }) => refusal ?? [])),
    onRefused: joinRefused(parts.flatMap(({ onRefused }) => onRefused ?? [])),
    observeServer: parts.find(({ observeServer }) => observeServer !== undefined)?.observeServer,
    serves: (endpoints) => each(parts, (part) => part.serves(endpoints)),
    reopen: () => each(parts, (part) => part.reopen()),
    endWatching: () => each(parts, (part) => part.endWatching()),
    close: async () => void (await Promise.all([...parts, ...(traces ? [traces] : [])].map((part) => part.close()))),
  };
}

function joinRefused(listeners: readonly OnRefused[]): OnRefused | undefined {
  if (listeners.length === 0) return undefined;
  return (reason) => {
    for (const listener of listeners) listener(reason);
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
  // The user who starts a bridge for one client knows when that client connects.
  return log.isLevelEnabled(clients === 'one' ? 'debug' : 'info')
    ? { ...NOTHING, observer: new ClientLog({ log, clock }) }
    : NOTHING;
}

/** A client on a pipe is refused nothing before its messages are read. */
function logRefusals({ clients, deps }: ObservationRequest): ObservingPart {
  if (clients === 'one' || !deps.log.isLevelEnabled('warn')) return NOTHING;
  const refusals = new RefusalLog(deps);
  return {
    ...NOTHING,
    // The listener itself logs that there are too many connections.
    onRefused: (reason) => (reason === 'connections' ? undefined : refusals.refused(reason)),
    close: async () => refusals.close(),
  };
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

/** Loads the tracing libraries on demand, since they are large. */
async function traceCalls({ config: { traces }, deps: { log, clock } }: ObservationRequest) {
  if (traces === undefined) return undefined;
  const { startTraces } = await import('../../observe/traces/traces.ts');
  return startTraces({ ...traces, version: VERSION, log, clock });
}
