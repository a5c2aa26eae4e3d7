/** Translates the capabilities of one side for a peer of the other era. */
import { isDeclared } from '../vocabulary/client-declarations.ts';
import { asFields, type Fields } from '../vocabulary/payload.ts';
import { featuresOf, type RevisionFeatures, type RevisionId } from '../vocabulary/revisions.ts';
import { TASKS_EXTENSION } from '../vocabulary/task-extension.ts';

/**
 * Limit in characters for a client's capabilities as JSON. Sessions of a legacy server are opened with them, and a
 * modern server receives them with each request of a legacy client.
 */
export const MAX_CAPABILITIES_LENGTH = 16 * 1024;
/** Limit in bytes for capabilities as the client wrote them. Longer ones are not read. */
export const MAX_CAPABILITIES_BYTES = 4 * MAX_CAPABILITIES_LENGTH;

export interface CanonicalCapabilities {
  /**
   * Parsed again at each access, because waiting calls keep them and objects take many times the memory of their text.
   */
  readonly capabilities: Fields;
  /** Equal for all capabilities that mean the same to a legacy server. */
  readonly key: string;
  /** True if a server may ask the client for roots, sampling or elicitation. */
  readonly areAskable: boolean;
}

/**
 * The capabilities that a legacy server may act on, in one canonical form. Clients with the same key can share a
 * session of a legacy server, because the key covers everything the server may ask of them.
 */
export function canonicalCapabilities(declared: Fields): CanonicalCapabilities {
  const told = compact({
    roots: isDeclared(declared.roots) ? {} : undefined,
    sampling: pickDeclared(declared.sampling, ['context', 'tools']),
    elicitation: withModes(pickDeclared(declared.elicitation, ['form', 'url'])),
    experimental: nonEmpty(asFields(declared.experimental)),
    extensions: nonEmpty(withoutTasks(asFields(declared.extensions))),
  });
  const key = JSON.stringify(sorted(told));
  return {
    key,
    areAskable: told.roots !== undefined || told.sampling !== undefined || told.elicitation !== undefined,
    get capabilities() {
      return JSON.parse(key) as Fields;
    },
  };
}

/**
 * Corrects a declaration that was written for the latest legacy revision, for a server of this revision. Returns
 * undefined if the server does not misread `declared`, so it needs no correction.
 */
export function correctedDeclaration(declared: Fields, revision: RevisionId): Fields | undefined {
  const { elicitation, ...rest } = declared;
  const isMisread = featuresOf(revision).elicitation === 'form' && isDeclared(elicitation);
  return isMisread && !isDeclared(asFields(elicitation)?.form) ? rest : undefined;
}

/** The capabilities from a legacy client's `initialize`, for the envelope of its requests to a modern server. */
export function toModernCapabilities(declared: Fields, clientRevision: RevisionId): Fields {
  const { capabilities } = canonicalCapabilities(declared);
  const features = featuresOf(clientRevision);
  return compact({
    ...capabilities,
    sampling: samplingFor(capabilities.sampling, features),
    elicitation: modernElicitation(asFields(capabilities.elicitation), features),
  });
}

/** Empties `sampling` for a revision that defines no members in it. */
function samplingFor(sampling: unknown, features: RevisionFeatures): unknown {
  return isDeclared(sampling) && !features.samplingTools ? {} : sampling;
}

function modernElicitation(elicitation: Fields | undefined, { elicitation: form }: RevisionFeatures): unknown {
  if (form === 'modes') return elicitation;
  return form === 'form' && elicitation !== undefined ? { form: {} } : undefined;
}

/** The capabilities of the specification. The meaning of any others is unknown to the bridge. */
const specified: ReadonlySet<string> = new Set([
  'tools',
  'prompts',
  'resources',
  'logging',
  'completions',
  'experimental',
]);

/** `capabilities` of a legacy server's InitializeResult for a DiscoverResult. */
export function toDiscoverCapabilities(capabilities: Fields): Fields {
  const { tasks: _, extensions, ...rest } = capabilities;
  const declared = Object.entries(rest).filter(([, value]) => isDeclared(value));
  // Some servers write true in place of an object.
  const told = declared.map(([name, value]) => [name, specified.has(name) ? (asFields(value) ?? {}) : value] as const);
  return compact({ ...Object.fromEntries(told), extensions: nonEmpty(withoutTasks(asFields(extensions))) });
}

/** `capabilities` of a modern server's DiscoverResult for an InitializeResult of this revision. */
export function toInitializeCapabilities(capabilities: Fields, clientRevision: RevisionId): Fields {
  const { completions, ...rest } = toDiscoverCapabilities(capabilities);
  return featuresOf(clientRevision).completionsCapability ? compact({ ...rest, completions }) : rest;
}

/** [spec 2026-07-28 client/elicitation#capabilities] for compatibility, `{}` means forms. */
function withModes(elicitation: Fields | undefined): Fields | undefined {
  return elicitation !== undefined && Object.keys(elicitation).length === 0 ? { form: {} } : elicitation;
}

/** The members with these names that are declared; undefined if the capability itself is not declared. */
function pickDeclared(capability: unknown, names: readonly string[]): Fields | undefined {
  if (!isDeclared(capability)) return undefined;
  const fields = asFields(capability) ?? {};
  const picked = names.filter((name) => isDeclared(fields[name]));
  return Object.fromEntries(picked.map((name) => [name, asFields(fields[name]) ?? {}]));
}

function withoutTasks(extensions: Fields | undefined): Fields | undefined {
  if (extensions === undefined) return undefined;
  return Object.fromEntries(Object.entries(extensions).filter(([name]) => name !== TASKS_EXTENSION));
}

function nonEmpty(fields: Fields | undefined): Fields | undefined {
  return fields !== undefined && Object.keys(fields).length > 0 ? fields : undefined;
}

function compact(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  const fields = asFields(value);
  if (fields === undefined) return value;
  const entries = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
