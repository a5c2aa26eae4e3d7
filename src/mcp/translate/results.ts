/**
 * Translates results of one era for a client of the other: a few members are added or removed, the rest stays byte for
 * byte.
 */

import { isNullToken } from '../../wire/envelope-members.ts';
import { editFrame, type Frame } from '../../wire/frame.ts';
import { ObjectEditor } from '../../wire/json/object-editor.ts';
import { type Edit, isStringToken } from '../../wire/json/scan-json.ts';
import { META_RELATED_TASK, META_SERVER_INFO, META_SUBSCRIPTION_ID } from '../vocabulary/meta.ts';
import { CALL_TOOL, isCacheable, isSpecified, LIST_TOOLS } from '../vocabulary/methods.ts';
import { asFields, encodeJson, type Fields } from '../vocabulary/payload.ts';
import { MODERN_REVISION_IDS, type RevisionId } from '../vocabulary/revisions.ts';
import { toDiscoverCapabilities, toInitializeCapabilities } from './capabilities.ts';
import { modernToolEdits } from './modern-tools.ts';

/** The time for which a result may be reused, and by which clients. [spec 2026-07-28 server/utilities/caching] */
export interface CacheHints {
  readonly ttlMs: number;
  readonly cacheScope: 'public' | 'private';
}

/** The hints for a server that gives none. */
export const NO_CACHING: CacheHints = { ttlMs: 0, cacheScope: 'private' };

export interface ModernResultOptions {
  /** The method of the request that the result answers. */
  readonly method: string;
  /** The server's own name and version. */
  readonly serverInfo: Fields | undefined;
  /** Hints for a cacheable result; other results get none. */
  readonly cache?: CacheHints;
  /** The result is sent with the id of this message. Default: it keeps its own id. */
  readonly under?: Frame;
}

/**
 * Translates a legacy server's result for a modern client. Values that the server wrote in `resultType` and other
 * members unknown in its era are overwritten. Undefined if the result is no object, as every revision requires.
 */
export function toModernResult(frame: Frame, options: ModernResultOptions): Frame | undefined {
  const { method, serverInfo, cache = NO_CACHING, under = frame } = options;
  const { bytes, payloadStart } = frame;
  const result = ObjectEditor.readIn(frame, frame.kind === 'result' ? payloadStart : -1, MODERN_MEMBERS);
  if (result === undefined) return undefined;
  result.set('resultType', COMPLETE);
  changeMeta(frame, result, [META_RELATED_TASK], serverInfo);
  if (isCacheable(method)) setHints(result, method, cache);
  if (method === CALL_TOOL && isMissing(bytes, result, 'content')) result.set('content', EMPTY_LIST);
  if (method === LIST_TOOLS) editValue(result, 'tools', modernToolEdits(bytes, result.value('tools')?.start ?? -1));
  return editFrame(frame, withIdOf(under, frame, result.edits()), under.id);
}

/** Adds the edit of the id to those of the payload if the id changes, so that a large result is copied only once. */
function withIdOf(under: Frame, frame: Frame, edits: readonly Edit[]): readonly Edit[] {
  if (under === frame) return edits;
  const { idStart, idEnd, payloadStart } = frame;
  const edit = { start: idStart, end: idEnd, replacement: under.bytes.subarray(under.idStart, under.idEnd) };
  return idStart < payloadStart ? [edit, ...edits] : [...edits, edit];
}

/**
 * Sets the cache hints. Hints in the result of an extension's method stay, since the extension may define them for any
 * era; a method of the specification has them only in the modern era.
 */
function setHints(result: ObjectEditor, method: string, cache: CacheHints): void {
  for (const [key, value] of [
    ['ttlMs', cache.ttlMs],
    ['cacheScope', cache.cacheScope],
  ] as const) {
    if (isSpecified(method) || result.value(key) === undefined) result.set(key, encodeJson(value));
  }
}

const MODERN_MEMBERS = ['resultType', '_meta', 'ttlMs', 'cacheScope', 'content', 'tools'];
const COMPLETE = encodeJson('complete');
const EMPTY_LIST = encodeJson([]);

/** Returns true if the member is absent or null, because servers in some languages write an empty list as null. */
function isMissing(bytes: Buffer, object: ObjectEditor, key: string): boolean {
  const span = object.value(key);
  return span === undefined || isNullToken(bytes, span.start, span.end);
}

/** Members that the specification defines for modern results in general. */
const specified = ['ttlMs', 'cacheScope', 'inputRequests', 'requestState'] as const;

/**
 * Translates a modern server's result for a legacy client. The official legacy clients reject an empty result that has
 * any unknown member.
 */
export function toLegacyResult(frame: Frame, method: string): Frame {
  const result = ObjectEditor.readIn(frame, frame.payloadStart, ['resultType', '_meta', ...specified]);
  if (result === undefined) return frame;
  const { bytes } = frame;
  const type = result.value('resultType');
  // [spec 2026-07-28 basic#resulttype] any other type belongs to an extension, together with its members.
  if (type === undefined || isStringToken(bytes, type.start, type.end, 'complete')) {
    result.remove('resultType');
    // In the result of an extension's method, members with these names may be the extension's.
    if (isSpecified(method)) for (const key of specified) result.remove(key);
  }
  changeMeta(frame, result, [META_SERVER_INFO, META_SUBSCRIPTION_ID], undefined);
  return editFrame(frame, result.edits());
}

const META_MEMBERS = [META_SERVER_INFO, META_RELATED_TASK, META_SUBSCRIPTION_ID];

/**
 * Removes members from `_meta` and adds the server's name. A `_meta` that becomes empty is removed; one that was empty
 * before stays.
 */
function changeMeta(
  frame: Frame,
  result: ObjectEditor,
  removed: readonly string[],
  serverInfo: Fields | undefined,
): void {
  const span = result.value('_meta');
  const meta = ObjectEditor.readIn(frame, span?.start ?? -1, META_MEMBERS);
  if (meta === undefined) {
    if (serverInfo === undefined) result.remove('_meta');
    else result.set('_meta', metaOf(serverInfo));
    return;
  }
  for (const key of removed) meta.remove(key);
  if (serverInfo !== undefined) meta.set(META_SERVER_INFO, encodeJson(serverInfo));
  const edits = meta.edits();
  if (edits.length > 0 && meta.isEmpty) result.remove('_meta');
  else editValue(result, '_meta', edits);
}

/** Encoded `_meta` by server info: a session has one server info, which goes into every result. */
const metas = new WeakMap<Fields, Buffer>();

function metaOf(serverInfo: Fields): Buffer {
  let meta = metas.get(serverInfo);
  if (meta === undefined) {
    meta = encodeJson({ [META_SERVER_INFO]: serverInfo });
    metas.set(serverInfo, meta);
  }
  return meta;
}

function editValue(object: ObjectEditor, key: string, edits: ReturnType<ObjectEditor['edits']>): void {
  if (edits.length > 0) object.edit(key, edits);
}

export interface DiscoverOptions {
  /** Extensions that the bridge provides in addition to the server's own. */
  readonly extensions?: Fields | undefined;
  readonly cache?: CacheHints;
}

/** Members that the specification defines for either of the two results. They are built anew; all others are copied. */
const introduction: ReadonlySet<string> = new Set([
  'resultType',
  'supportedVersions',
  'protocolVersion',
  'capabilities',
  'serverInfo',
  'instructions',
  'ttlMs',
  'cacheScope',
  '_meta',
]);
const introductionMeta: ReadonlySet<string> = new Set([META_SERVER_INFO, META_SUBSCRIPTION_ID]);

function without(names: ReadonlySet<string>, fields: Fields | undefined): Fields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => !names.has(name)));
}

/** The `server/discover` result for a legacy server, from its `initialize` result. */
export function discoverResult(initialized: Fields, { extensions, cache = NO_CACHING }: DiscoverOptions = {}): Fields {
  const { instructions } = initialized;
  const capabilities = toDiscoverCapabilities(asFields(initialized.capabilities) ?? {});
  const serverInfo = readServerInfo(initialized.serverInfo);
  const meta = {
    ...without(introductionMeta, asFields(initialized._meta)),
    ...(serverInfo && { [META_SERVER_INFO]: serverInfo }),
  };
  return {
    ...without(introduction, initialized),
    resultType: 'complete',
    supportedVersions: MODERN_REVISION_IDS,
    capabilities: {
      ...capabilities,
      ...(extensions && { extensions: { ...asFields(capabilities.extensions), ...extensions } }),
    },
    ...(typeof instructions === 'string' && { instructions }),
    ...cache,
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

export interface InitializeOptions {
  readonly revision: RevisionId;
  /** The name for a server that gives none, since legacy clients require one. */
  readonly fallbackName: string;
}

/** The `initialize` result for a modern server, from its `server/discover` result. */
export function initializeResult(discovered: Fields, options: InitializeOptions): Fields {
  const { revision, fallbackName } = options;
  const { instructions } = discovered;
  const capabilities = asFields(discovered.capabilities) ?? {};
  const meta = without(introductionMeta, asFields(discovered._meta));
  return {
    ...without(introduction, discovered),
    protocolVersion: revision,
    capabilities: toInitializeCapabilities(capabilities, revision),
    serverInfo: readServerInfo(asFields(discovered._meta)?.[META_SERVER_INFO]) ?? {
      name: fallbackName,
      version: UNKNOWN_VERSION,
    },
    ...(typeof instructions === 'string' && { instructions }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  };
}

const UNKNOWN_VERSION = '0.0.0';

/** The server info with all its members; undefined if it has no name. */
export function readServerInfo(value: unknown): Fields | undefined {
  const info = asFields(value);
  if (typeof info?.name !== 'string') return undefined;
  return typeof info.version === 'string' ? info : { ...info, version: UNKNOWN_VERSION };
}
