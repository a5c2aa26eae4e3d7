/** A client's declarations about itself: capabilities, name and version, and minimum log level. */
import type { Implementation } from './meta.ts';
import { ELICIT, LIST_ROOTS, SAMPLE } from './methods.ts';
import { asFields, type Fields } from './payload.ts';

/** `capabilities` of an `initialize` request, as far as requests of a server presume them. */
export interface ClientCapabilities {
  readonly sampling?: unknown;
  readonly roots?: unknown;
  readonly elicitation?: unknown;
}

/**
 * Capabilities that the bridge declares to a server which several clients share: requests that it can forward to the
 * right client.
 */
export const CARRIED_CAPABILITIES = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  // Without listChanged: each client has roots of its own, and a change in one must not make the server ask all.
  roots: {},
} as const satisfies ClientCapabilities;

/**
 * Reads only whether capabilities are declared. Their details are the client's choice, and would use memory for as long
 * as the client is known.
 */
export function readClientCapabilities(initializeParams: unknown): ClientCapabilities {
  const declared = asFields(asFields(initializeParams)?.capabilities);
  const { elicitation, ...others } = declaredOf(declared, ['sampling', 'roots', 'elicitation']);
  const modes = asFields(declared?.elicitation);
  return { ...others, ...(elicitation !== undefined && { elicitation: declaredOf(modes, ['form', 'url']) }) };
}

function declaredOf(capabilities: Fields | undefined, names: readonly string[]): Record<string, object> {
  return Object.fromEntries(names.filter((name) => isDeclared(capabilities?.[name])).map((name) => [name, {}]));
}

/** Returns the undeclared capability that this request of a server needs, or undefined if none is missing. */
export function missingCapability(
  capabilities: ClientCapabilities,
  method: string | undefined,
  params: unknown,
): string | undefined {
  switch (method) {
    case SAMPLE:
      return isDeclared(capabilities.sampling) ? undefined : 'sampling';
    case LIST_ROOTS:
      return isDeclared(capabilities.roots) ? undefined : 'roots';
    case ELICIT:
      return missingElicitation(capabilities.elicitation, asFields(params)?.mode);
    default:
      return undefined;
  }
}

/** [spec 2025-11-25 client/elicitation#capabilities] `{}` means form mode. */
function missingElicitation(elicitation: unknown, mode: unknown): string | undefined {
  if (!isDeclared(elicitation)) return 'elicitation';
  const modes = asFields(elicitation);
  const takesUrls = isDeclared(modes?.url);
  if (mode === 'url') return takesUrls ? undefined : 'elicitation.url';
  return takesUrls && !isDeclared(modes?.form) ? 'elicitation.form' : undefined;
}

/** A declared capability is an object; some clients write null or false for one that they do not have. */
export function isDeclared(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}

// ---- The client's name and version, as a server of the other era receives them

/**
 * Limit in characters for `clientInfo` as JSON, which is forwarded and kept as long as a session. Its icons may be
 * whole images.
 */
export const MAX_INFO_LENGTH = 4096;
/** Limit for name and version each, if the whole exceeds `MAX_INFO_LENGTH`. */
const MAX_NAME_LENGTH = 256;

/** Returns the info unchanged, or only name and version if it is too long. Both are strings. */
export function shortInfo(info: Fields): Fields {
  return JSON.stringify(info).length <= MAX_INFO_LENGTH ? info : { ...nameOf(info.name, info.version) };
}

/** The `clientInfo` that a legacy server receives for a modern client: name, title and version, without icons. */
export function clientInfoOf(info: Fields | undefined, fallback: Implementation): Implementation {
  if (info === undefined) return fallback;
  const { name, version, title } = info;
  if (typeof name !== 'string' || typeof version !== 'string') return fallback;
  const told = { name, ...(typeof title === 'string' && { title }), version };
  return name.length + version.length + (told.title?.length ?? 0) <= MAX_INFO_LENGTH ? told : nameOf(name, version);
}

function nameOf(name: unknown, version: unknown): Implementation {
  return { name: String(name).slice(0, MAX_NAME_LENGTH), version: String(version).slice(0, MAX_NAME_LENGTH) };
}

// ---- The client's minimum log level

/** Severities of `notifications/message`, least severe first. [spec 2025-11-25 server/utilities/logging#log-levels] */
const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export type LogLevel = (typeof levels)[number];

const severities: ReadonlyMap<string, number> = new Map(levels.map((level, index) => [level, index]));

export function parseLogLevel(value: unknown): LogLevel | undefined {
  return typeof value === 'string' && severities.has(value) ? (value as LogLevel) : undefined;
}

/** 0 for debug up to 7 for emergency. */
export function severityOf(level: LogLevel): number {
  return severities.get(level) ?? 0;
}
