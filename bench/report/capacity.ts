/** What the last run of `npm run bench:cluster` measured, and what follows from it: in short for docs/reference/scaling.md, and in full. */
import { geometricMean, median, medianRatio } from '../measure/statistics.ts';
import {
  CALLS_IN_FLIGHT,
  type CallCosts,
  type CallFigures,
  type CallKind,
  type ClusterRun,
  type PairFigures,
  type PairKind,
  type RouteCosts,
} from './cluster-run.ts';

const TITLES: Readonly<Record<CallKind, string>> = {
  ping: '`ping` to a command, the smallest request there is',
  tool: '`echo` of server-everything, a command built with the official SDK',
  remote: 'a tool of a remote server, one message in response',
  'remote-stream': 'a tool of a remote server, eleven messages in response',
  modern: 'a tool of a remote server of 2026-07-28',
};
const SHORT_TITLES: Readonly<Record<CallKind, string>> = {
  ping: '`ping` to a command',
  tool: '`echo` of server-everything, a command',
  remote: 'a tool at a URL, one message',
  'remote-stream': 'a tool at a URL, eleven messages',
  modern: 'a tool at a URL, 2026-07-28 (never forwarded)',
};
const PAIR_TITLES: Readonly<Record<PairKind, string>> = {
  command: 'a tool of a command, one message in response',
  remote: TITLES.remote,
  'remote-stream': TITLES['remote-stream'],
};
/** The bench starts the servers of these calls itself, so their processor time is known as well. */
const WITH_SERVERS: readonly CallKind[] = ['ping', 'tool'];
/** Any replica serves these calls, so none of them is forwarded. */
const NEVER_FORWARDED: readonly CallKind[] = ['modern'];
const IN_FLIGHT = { many: CALLS_IN_FLIGHT, one: 1 } as const;

/** The default of `--lease`. */
const LEASE_SECONDS = 15;
const REPLICAS = 3;
/** As many replicas as a large deployment has. */
const MANY_REPLICAS = 100;
const MANY_SESSIONS = 10_000;
const KIB = 1024;
const MIB = 1024 * KIB;

/** The generated part of docs/reference/scaling.md. */
export function renderCapacity(run: ClusterRun): string {
  const { machine, rest, sessions, calls } = run;
  const rows = calls.map((figures) => {
    const rate = 1e6 / median(figures.routes.alone.many.owner);
    const gain = gainOf(figures, 0);
    return [SHORT_TITLES[figures.kind], twoDigits(rate), `${twoDigits(rate * gain)} (${times(gain)})`];
  });
  const ofACall = Math.max(...calls.map(({ redisCommands }) => redisCommands));
  return `Calls a second, calculated from the processor time of mcp-portage on ${machine.cpu}, behind round robin, where ${REPLICAS - 1} of ${REPLICAS} calls
are forwarded ([measurements](../../bench/cluster-results.md)):

${table(['Call', 'One replica, one core', 'Three replicas, one core each'], rows)}

Forwarding costs about ${micros(forwardingMicros(run))} of processor time. Redis gets ${shown(ofACall)} commands for a call, ${shown(sessions.redisCommands)} for a new session with a
server at a URL, and at rest ${shown(rest.commands / LEASE_SECONDS, 2)} a second from each replica and ${shown(rest.commandsPerPeer / LEASE_SECONDS, 2)} more for each other one that it knows. ${twoDigits(MANY_SESSIONS)} such
sessions take ${mib(MANY_SESSIONS * median(sessions.bytes))} in replicas, ${mib(MANY_SESSIONS * median(sessions.bytesWithStream))} with open streams, and ${mib(MANY_SESSIONS * sessions.redisMemoryBytes)} in Redis.`;
}

/** The page bench/cluster-results.md. */
export function renderClusterResults(run: ClusterRun): string {
  const { machine, versions, callsOfARound } = run;
  return `<!-- Made by \`npm run docs\` from bench/last-cluster-run.json. -->
# Results of several replicas

## Measured

On ${run.date}, on ${machine.cores} cores of ${machine.cpu}, with mcp-portage ${versions['mcp-portage']}, Node ${versions.Node} and Redis ${versions.Redis}:
${run.rounds} rounds of ${callsOfARound} calls for each figure, in turns, with new processes every few rounds, ${shown(run.seconds / 60)} minutes in all. Figures are medians of the rounds, ratios are
medians of the rounds' ratios, and every response was checked. Run \`npm run bench:cluster\` to measure on your own machine.

Processor time of mcp-portage for one call, without the MCP server. All calls of the replica alone are for its own sessions;
half of those of the other one come from other replicas. In parentheses: a forwarded call beside one in that last replica:

${renderCalls(run)}

What Redis costs a call in the replica that has the session. Two bridges that do the same differ by more than that, so a
replica is measured beside two bridges without Redis, with ${run.pairs[0]?.replica.length} sets of new processes. Ratios are geometric means; in
parentheses are those of the sets that differed most:

${renderPairs(run)}

Time until the response, with one call in flight. Unlike processor time it includes the server and everything else that the
machine was doing:

${renderTimes(run)}

Redis and memory:

${renderHoldings(run)}

## Calculated from these figures

${renderGains(run)}

${renderCalculated(run)}
`;
}

function renderCalls({ calls }: ClusterRun): string {
  const rows = calls.flatMap(({ kind, routes: { storeless, alone, owned, forwarded } }) =>
    (['many', 'one'] as const).map((load) => [
      TITLES[kind],
      String(IN_FLIGHT[load]),
      micros(median(storeless[load].owner)),
      ...[alone, owned].map((route) => micros(median(route[load].owner))),
      NEVER_FORWARDED.includes(kind)
        ? 'never forwarded'
        : `${micros(median(workOf(forwarded[load])))} (${times(medianRatio(workOf(forwarded[load]), owned[load].owner))})`,
    ]),
  );
  const head = [
    'Call',
    'In flight',
    'One bridge without Redis',
    'Replica with the session, alone',
    'Replica with the session',
    'Forwarded: both replicas',
  ];
  return table(head, rows);
}

function renderPairs({ pairs }: ClusterRun): string {
  const rows = pairs.map(({ kind, inFlight, replica, storeless }) => [
    PAIR_TITLES[kind],
    String(inFlight),
    spread(besideEach(replica, storeless)),
    spread(amongThemselves({ storeless })),
  ]);
  return table(
    ['Call', 'In flight', 'Replica beside a bridge without Redis', 'Two such bridges beside each other'],
    rows,
  );
}

/** Each replica beside both bridges of its set. */
function besideEach(replica: readonly number[], storeless: readonly number[]): readonly number[] {
  return storeless.map((micros, index) => (replica[Math.floor(index / 2)] ?? Number.NaN) / micros);
}

function amongThemselves({ storeless }: Pick<PairFigures, 'storeless'>): readonly number[] {
  return storeless.flatMap((micros, index) => (index % 2 === 0 ? [(storeless[index + 1] ?? Number.NaN) / micros] : []));
}

function spread(ratios: readonly number[]): string {
  const between = `${times(Math.min(...ratios), 2)} to ${times(Math.max(...ratios), 2)}`;
  return `${times(geometricMean(ratios), 2)} (${between})`;
}

function renderTimes({ calls }: ClusterRun): string {
  const rows = calls.map(({ kind, routes: { storeless, owned, forwarded } }) => {
    const of = ({ one }: RouteCosts): string => `${shown(median(one.milliseconds), 2)} ms`;
    return [TITLES[kind], of(storeless), of(owned), NEVER_FORWARDED.includes(kind) ? 'never forwarded' : of(forwarded)];
  });
  return table(['Call', 'One bridge without Redis', 'Replica with the session', 'Forwarded'], rows);
}

function renderHoldings({ rest, sessions, calls }: ClusterRun): string {
  const asked = (commands: number, bytes: number): string =>
    `${shown(commands)} ${shown(commands) === '1' ? 'command' : 'commands'}, ${kib(bytes)}`;
  const streamed = calls.filter(({ kind }) => kind === 'remote-stream');
  const others = calls.filter((figures) => !streamed.includes(figures));
  const most = (figures: readonly CallFigures[]): string =>
    asked(
      Math.max(...figures.map(({ redisCommands }) => redisCommands)),
      Math.max(...figures.map(({ redisBytes }) => redisBytes)),
    );
  const rows = [
    ['Redis traffic of one call, forwarded or not, at most', most(others)],
    ['Redis traffic of one call whose response is a stream of eleven messages', most(streamed)],
    ['Redis traffic of opening a session with a remote server', asked(sessions.redisCommands, sessions.redisBytes)],
    ['Redis memory of such a session', kib(sessions.redisMemoryBytes)],
    ['Memory of its replica', kib(median(sessions.bytes))],
    ['The same, when client and server each keep an event stream open', kib(median(sessions.bytesWithStream))],
    ['Redis traffic of a replica at rest, per lease', asked(rest.commands, rest.bytes)],
    ['More for each other replica it has exchanged requests with', asked(rest.commandsPerPeer, rest.bytesPerPeer)],
  ];
  return table(['What', 'Measured'], rows);
}

function renderGains({ calls }: ClusterRun): string {
  const rows = calls.map((figures) => {
    const { kind, routes } = figures;
    const rate = 1e6 / median(routes.alone.many.owner);
    const gain = gainOf(figures, 0);
    return [
      TITLES[kind],
      twoDigits(rate),
      `${twoDigits(rate * gain)} (${times(gain)})`,
      WITH_SERVERS.includes(kind) ? times(gainOf(figures, serverMicros(routes))) : '–',
    ];
  });
  const head = [
    'Calls a second',
    'One replica, one core',
    'Three replicas, one core each',
    'Three, with the servers on the same cores',
  ];
  return `Behind round robin, ${REPLICAS - 1} of ${REPLICAS} calls reach a replica that does not have the session and are forwarded:

${table(head, rows)}

Behind a balancer that remembers sessions, as [HAProxy can](../docs/guide/scaling.md#load-balancers), none is forwarded, and three replicas serve
${REPLICAS} times as many calls as one, as long as the sessions are spread evenly.`;
}

function renderCalculated(run: ClusterRun): string {
  const { rest, sessions } = run;
  const perSecond = rest.commands / LEASE_SECONDS;
  const perPeer = rest.commandsPerPeer / LEASE_SECONDS;
  const ofMany = MANY_REPLICAS * (perSecond + (MANY_REPLICAS - 1) * perPeer);
  const bytesOfMany = (MANY_REPLICAS * (rest.bytes + (MANY_REPLICAS - 1) * rest.bytesPerPeer)) / LEASE_SECONDS;
  return [
    `- **Forwarding** adds about ${micros(forwardingMicros(run))} of processor time to a call, and nothing to the server's own work. The more work a
  call is for its server, the closer three replicas come to three times as many calls.`,
    `- **Redis at rest**, with the default \`--lease\` of ${LEASE_SECONDS} s: ${shown(perSecond, 2)} commands a second from each replica, and ${shown(perPeer, 2)} more for
  each other replica that it knows. ${MANY_REPLICAS} replicas that all know each other send ${twoDigits(ofMany)} commands a second
  (${shown(bytesOfMany / MIB)} MiB with the responses), which one Redis can serve. The number grows with the square of the replicas, so a
  thousand would be too many.`,
    `- **${twoDigits(MANY_SESSIONS)} sessions** with remote servers take ${mib(MANY_SESSIONS * median(sessions.bytes))} of memory in their replicas, ${mib(MANY_SESSIONS * median(sessions.bytesWithStream))} with open
  streams, and ${mib(MANY_SESSIONS * sessions.redisMemoryBytes)} in Redis. The messages on their streams come on top, up to 1000 for each stream.`,
  ].join('\n');
}

/** Of processor time, for one call. */
function forwardingMicros(run: ClusterRun): number {
  const { routes } = figuresOf(run, 'ping');
  return median(differences(workOf(routes.forwarded.many), workOf(routes.owned.many)));
}

function figuresOf({ calls }: ClusterRun, kind: CallKind): CallFigures {
  const found = calls.find((figures) => figures.kind === kind);
  if (found === undefined) throw new Error(`the run has no calls of the kind ${kind}`);
  return found;
}

/** Processor time of both replicas, round by round. */
function workOf({ owner, forwarder }: CallCosts): readonly number[] {
  return owner.map((spent, round) => spent + (forwarder[round] ?? Number.NaN));
}

/** Of one call. It is the same work wherever the call arrives. */
function serverMicros(routes: CallFigures['routes']): number {
  return median(Object.values(routes).flatMap(({ many }) => many.servers));
}

/**
 * How many times as many calls several replicas serve as one, when each call reaches any of them.
 * @param others what else each call costs on the same cores, in microseconds
 */
function gainOf({ kind, routes }: CallFigures, others: number): number {
  if (NEVER_FORWARDED.includes(kind)) return REPLICAS;
  const owned = routes.owned.many.owner;
  const forwarded = workOf(routes.forwarded.many);
  const ofAny = owned.map(
    (spent, round) => (spent + (REPLICAS - 1) * (forwarded[round] ?? Number.NaN)) / REPLICAS + others,
  );
  return (
    REPLICAS /
    medianRatio(
      ofAny,
      routes.alone.many.owner.map((spent) => spent + others),
    )
  );
}

function differences(values: readonly number[], others: readonly number[]): readonly number[] {
  return values.map((value, round) => value - (others[round] ?? Number.NaN));
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = `|${head.map((_, column) => (column === 0 ? '---|' : '--:|')).join('')}`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** A number with so many decimals at most, and no trailing zeros. */
function shown(value: number, decimals = 1): string {
  return String(Number(value.toFixed(decimals)) + 0);
}

function times(ratio: number, decimals = 1): string {
  return `${ratio.toFixed(decimals)}×`;
}

function micros(value: number): string {
  return `${value.toFixed(0)} µs`;
}

function kib(bytes: number): string {
  return `${shown(bytes / KIB)} KiB`;
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(0)} MiB`;
}

/** No figure here is more exact than two digits. */
function twoDigits(value: number): string {
  return Number(value.toPrecision(2)).toLocaleString('en-US');
}
