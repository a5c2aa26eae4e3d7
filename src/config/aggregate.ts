/**
 * The headers of callers that pass through the aggregate. It collects all that any of its members is shown, under names
 * of its own, since members may give different headers the same name. Each member then gets only its own.
 */
import type { MappedHeader } from './access.ts';
import type { ForwardedHeader } from './remote.ts';
import type { ServerConfig } from './server.ts';

/** Between the aggregate and its members, a header that is forwarded has its own name with this before it. */
const PASSED = 'x-mcp-portage-passed-';

type Texts = Readonly<Record<string, string>>;

/** The servers, by the headers of callers that they are shown. */
type ShownHeaders = Pick<ServerConfig, 'mapHeaders'> & {
  readonly remote: Pick<ServerConfig['remote'], 'forwardHeaders'>;
};

/** Returns the servers that are part of the aggregate. */
export function membersOf<S extends Pick<ServerConfig, 'listing'>>(servers: readonly S[]): readonly S[] {
  return servers.filter(({ listing }) => listing?.membership !== undefined);
}

/** Returns the aggregate with the headers that any of its members is shown. */
export function collectHeaders(aggregate: ServerConfig, servers: readonly ServerConfig[]): ServerConfig {
  const members = membersOf(servers);
  const forwarded = new Set(members.flatMap(({ remote }) => remote.forwardHeaders.map(({ name }) => name)));
  const forwardHeaders = [...forwarded].map((name): ForwardedHeader => ({ name, sentAs: PASSED + name }));
  // The exchange of the first member makes the aggregate take note of callers' tokens; each member exchanges them by itself.
  const exchange = members.find(({ remote }) => remote.exchange !== undefined)?.remote.exchange;
  return {
    ...aggregate,
    mapHeaders: collectMapped(members),
    remote: { ...aggregate.remote, forwardHeaders, exchange },
  };
}

/** Returns the headers that any of the members gets as a variable. The aggregate calls each variable like its header. */
export function collectMapped(members: readonly Pick<ServerConfig, 'mapHeaders'>[]): readonly MappedHeader[] {
  const mapped = new Set(members.flatMap(({ mapHeaders }) => mapHeaders.map(({ header }) => header)));
  return [...mapped].map((header) => ({ header, variable: header }));
}

/** Returns the headers that pass to a member, by the names that they have there; undefined: none. */
export function headersOfMember(headers: Texts | undefined, { remote }: ShownHeaders): Texts | undefined {
  if (headers === undefined) return undefined;
  return pick(
    headers,
    remote.forwardHeaders.map(({ name, sentAs }) => [PASSED + name, sentAs]),
  );
}

/**
 * Returns the variables for the process of a member. Undefined for a member that gets none of anybody, as at its own
 * address.
 */
export function environmentOfMember(environment: Texts | undefined, { mapHeaders }: ShownHeaders): Texts | undefined {
  if (mapHeaders.length === 0) return undefined;
  return (
    pick(
      environment ?? {},
      mapHeaders.map(({ header, variable }) => [header, variable]),
    ) ?? {}
  );
}

function pick(texts: Texts, names: readonly (readonly [from: string, to: string])[]): Texts | undefined {
  let picked: Record<string, string> | undefined;
  for (const [from, to] of names) {
    const text = texts[from];
    if (text === undefined) continue;
    picked ??= {};
    picked[to] = text;
  }
  return picked;
}
