/** The pins of a file: the definitions of tools that were accepted, and those that wait to be. */
import type { ToolDigests, ToolPart } from '../mcp/classify/tool-definition.ts';
import { TOOL_PARTS } from '../mcp/classify/tool-definition.ts';
import type { Era } from '../mcp/vocabulary/revisions.ts';

/**
 * The definition of a tool in each era. A server of both eras may define the same tool slightly differently in each;
 * most do not, so an era that is missing counts as equal to the other.
 */
export type Definition = Readonly<Partial<Record<Era, ToolDigests>>>;

export interface ServerPins {
  /** The accepted definitions, by the names that the server gives its tools. */
  readonly pinned: ReadonlyMap<string, Definition>;
  /** Definitions that differ from the pins, as they were seen last. */
  readonly waiting: ReadonlyMap<string, Definition>;
}

/** By server: its name in the configuration file, its command or its URL. */
export type Pins = ReadonlyMap<string, ServerPins>;

export const NO_PINS: Pins = new Map();

/** Tools of one server. Lists in use have some hundred. */
export const MAX_PINNED_TOOLS = 10_000;
/** Changed or new tools of one server that wait. Further ones are hidden all the same. */
export const MAX_WAITING_TOOLS = 1000;
/** Longer names are of no tool. The specification allows 128 characters. [spec 2025-11-25 server/tools#tool-names] */
export const MAX_PINNED_NAME_LENGTH = 1024;

const VERSION = 1;

/** Why a tool differs from its pin: it was not there when the server's tools were pinned, or these parts are others. */
export type PinDifference =
  | { readonly kind: 'appeared' }
  | { readonly kind: 'changed'; readonly parts: readonly ToolPart[] };

/** Returns the difference of a definition, as seen in an era, from what is pinned. Undefined if there is none. */
export function differenceOf(
  pinned: Definition | undefined,
  era: Era,
  digests: ToolDigests,
): PinDifference | undefined {
  const expected = pinned && digestsIn(pinned, era);
  if (expected === undefined) return { kind: 'appeared' };
  const parts = TOOL_PARTS.filter((part) => expected[part] !== digests[part]);
  return parts.length === 0 ? undefined : { kind: 'changed', parts };
}

function digestsIn(definition: Definition, era: Era): ToolDigests | undefined {
  return definition[era] ?? definition[era === 'legacy' ? 'modern' : 'legacy'];
}

// ---- The text of a file

/** Thrown for a text that is not the text of pins. The message is the reason. */
export class DamagedPins extends Error {}

export function formatPins(pins: Pins): string {
  const servers = Object.fromEntries(
    [...pins].map(([name, { pinned, waiting }]) => [name, { tools: sorted(pinned), waiting: sorted(waiting) }]),
  );
  return `${JSON.stringify({ version: VERSION, servers }, undefined, 2)}\n`;
}

/** Returns true if the same is pinned, whatever waits. */
export function arePinnedAlike(one: Pins, other: Pins): boolean {
  if (one === other) return true;
  const [first, second] = [one, other].map((pins) =>
    formatPins(new Map([...pins].map(([name, { pinned }]) => [name, { pinned, waiting: new Map() }]))),
  );
  return first === second;
}

function sorted(definitions: ReadonlyMap<string, Definition>): object {
  return Object.fromEntries([...definitions].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Throws DamagedPins for anything that `formatPins` would not write, so that no pin is ever lost unnoticed. */
export function parsePins(text: string): Pins {
  if (text === '') throw new DamagedPins('it is empty');
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new DamagedPins('it is not JSON, or not all of it is there');
  }
  const { version, servers, ...others } = membersOf(file, 'the file');
  if (version !== VERSION) throw new DamagedPins(`its version is not ${VERSION}`);
  refuseOthers(others, 'the file');
  const entries = Object.entries(membersOf(servers, '"servers"'));
  return new Map(entries.map(([name, server]) => [name, parseServer(server, `the server ${JSON.stringify(name)}`)]));
}

function parseServer(value: unknown, place: string): ServerPins {
  const { tools, waiting, ...others } = membersOf(value, place);
  refuseOthers(others, place);
  return { pinned: parseTools(tools, `"tools" of ${place}`), waiting: parseTools(waiting, `"waiting" of ${place}`) };
}

function parseTools(value: unknown, place: string): ReadonlyMap<string, Definition> {
  const entries = Object.entries(membersOf(value, place));
  return new Map(entries.map(([name, tool]) => [name, parseDefinition(tool, `${JSON.stringify(name)} in ${place}`)]));
}

function parseDefinition(value: unknown, place: string): Definition {
  const { legacy, modern, ...others } = membersOf(value, place);
  refuseOthers(others, place);
  if (legacy === undefined && modern === undefined) throw new DamagedPins(`${place} has no definition`);
  return {
    ...(legacy !== undefined && { legacy: parseDigests(legacy, place) }),
    ...(modern !== undefined && { modern: parseDigests(modern, place) }),
  };
}

/** SHA-256 in base64url. */
const DIGEST = /^[\w-]{43}$/;

function parseDigests(value: unknown, place: string): ToolDigests {
  const digests = membersOf(value, place);
  for (const [part, digest] of Object.entries(digests)) {
    const isKnown = TOOL_PARTS.some((known) => known === part);
    if (!isKnown || typeof digest !== 'string' || !DIGEST.test(digest)) {
      throw new DamagedPins(`${JSON.stringify(part)} of ${place} is no digest`);
    }
  }
  return digests as ToolDigests; // each member was checked
}

function membersOf(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  throw new DamagedPins(`${place} is no object`);
}

function refuseOthers(others: object, place: string): void {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new DamagedPins(`${place} has an unknown member ${JSON.stringify(unknown)}`);
}

// ---- Changes, each of which returns other pins

/** Accepts the tools of a server at first sight. A server that has pins keeps them. */
export function pinFirst(pins: Pins, server: string, tools: ReadonlyMap<string, Definition>): Pins {
  return pins.has(server) ? pins : new Map([...pins, [server, { pinned: tools, waiting: new Map() }]]);
}

/** A definition that differs from its pin, or undefined for one that does not differ anymore. */
export interface Sighting {
  readonly server: string;
  readonly tool: string;
  readonly era: Era;
  readonly digests: ToolDigests | undefined;
}

/** Notes what waits to be accepted. Returns the same pins if nothing changes. */
export function noteSightings(pins: Pins, sightings: Iterable<Sighting>): Pins {
  const changed = new Map<string, Map<string, Definition>>();
  for (const { server, tool, era, digests } of sightings) {
    const known = pins.get(server);
    if (known === undefined) continue;
    const waiting = changed.get(server) ?? new Map(known.waiting);
    const { [era]: before, ...other } = waiting.get(tool) ?? {};
    const isAccepted = digests !== undefined && differenceOf(known.pinned.get(tool), era, digests) === undefined;
    const now = isAccepted ? undefined : digests;
    if (isSame(before, now) || (before === undefined && !waiting.has(tool) && waiting.size >= MAX_WAITING_TOOLS))
      continue;
    const definition = now === undefined ? other : { ...other, [era]: now };
    if (Object.keys(definition).length === 0) waiting.delete(tool);
    else waiting.set(tool, definition);
    changed.set(server, waiting);
  }
  if (changed.size === 0) return pins;
  return new Map(
    [...pins].map(([name, server]) => [name, { ...server, waiting: changed.get(name) ?? server.waiting }]),
  );
}

function isSame(one: ToolDigests | undefined, other: ToolDigests | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return TOOL_PARTS.every((part) => one[part] === other[part]);
}

/** A tool that waits to be accepted. */
export interface WaitingTool {
  readonly server: string;
  readonly tool: string;
}

/** Accepts these tools as they were seen last. */
export function acceptTools(pins: Pins, accepted: readonly WaitingTool[]): Pins {
  return new Map(
    [...pins].map(([name, { pinned, waiting }]) => {
      const own = accepted.filter(({ server }) => server === name).map(({ tool }) => tool);
      const newer = own.map((tool) => [tool, { ...pinned.get(tool), ...waiting.get(tool) }] as const);
      const left = [...waiting].filter(([tool]) => !own.includes(tool));
      return [name, { pinned: new Map([...pinned, ...newer]), waiting: new Map(left) }];
    }),
  );
}
