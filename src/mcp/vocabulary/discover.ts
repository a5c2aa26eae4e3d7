/** `server/discover`: what the modern era has instead of a handshake, and the safest question to tell the eras apart. */
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { requestFrame } from '../../wire/write-message.ts';
import { METHOD_HEADER_OUT, PROTOCOL_VERSION_HEADER_OUT } from './headers.ts';
import {
  type Implementation,
  META_CLIENT_CAPABILITIES,
  META_CLIENT_INFO,
  META_PROTOCOL_VERSION,
  META_SERVER_INFO,
} from './meta.ts';
import { DISCOVER, PING } from './methods.ts';
import { asFields, type Fields } from './payload.ts';
import { type Era, LATEST_MODERN_REVISION } from './revisions.ts';

export interface ModernRequestOptions {
  readonly id: JsonRpcId;
  readonly method: string;
  /** The revision named in the envelope; it need not be one that is spoken here. */
  readonly revision: string;
  readonly clientInfo: Implementation;
  readonly params?: Fields;
}

/** A request of the bridge's own with its envelope, from a client that can do nothing for the server. */
export function createModernRequest({ id, method, revision, clientInfo, params = {} }: ModernRequestOptions): Frame {
  const envelope = {
    [META_PROTOCOL_VERSION]: revision,
    [META_CLIENT_INFO]: clientInfo,
    [META_CLIENT_CAPABILITIES]: {},
  };
  return requestFrame(id, method, { ...params, _meta: envelope });
}

/** `server/discover`. Over HTTP it is sent with `modernHeaders`. */
export function createDiscoverRequest(options: Omit<ModernRequestOptions, 'method' | 'params'>): Frame {
  return createModernRequest({ ...options, method: DISCOVER });
}

/** [spec 2026-07-28 transports/streamable-http#request-metadata] what HTTP repeats of a body that names nothing else. */
export function modernHeaders(method: string, revision: string): Readonly<Record<string, string>> {
  return { [PROTOCOL_VERSION_HEADER_OUT]: revision, [METHOD_HEADER_OUT]: method };
}

/** A DiscoverResult, as far as servers of all builds agree on it. */
export interface Discovery {
  readonly supportedVersions: readonly string[];
  readonly capabilities: Fields;
  readonly serverInfo: Implementation | undefined;
  readonly instructions: string | undefined;
}

/** Undefined: not a DiscoverResult. Missing cache hints and `resultType` are forgiven. */
export function parseDiscovery(result: unknown): Discovery | undefined {
  const fields = asFields(result);
  if (fields === undefined || !isStringArray(fields.supportedVersions)) return undefined;
  const { supportedVersions, capabilities, instructions, _meta, serverInfo } = fields;
  return {
    supportedVersions,
    capabilities: asFields(capabilities) ?? {},
    // Draft builds had it beside the capabilities, as InitializeResult has.
    serverInfo: parseImplementation(asFields(_meta)?.[META_SERVER_INFO]) ?? parseImplementation(serverInfo),
    instructions: typeof instructions === 'string' ? instructions : undefined,
  };
}

export function parseImplementation(value: unknown): Implementation | undefined {
  const { name, version } = asFields(value) ?? {};
  return typeof name === 'string' ? { name, version: typeof version === 'string' ? version : '' } : undefined;
}

export function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

export interface LifeQuestionOptions {
  readonly era: Era;
  readonly id: JsonRpcId;
  readonly clientInfo: Implementation;
}

/**
 * What every server of an era has to answer, and can at once. An error shows life, too.
 * [spec 2025-11-25 basic/utilities/ping#behavior-requirements]; 2026-07-28 has no ping, but servers must implement
 * `server/discover`. [spec 2026-07-28 changelog]
 */
export function createLifeQuestion({ era, id, clientInfo }: LifeQuestionOptions): Frame {
  if (era === 'legacy') return requestFrame(id, PING);
  return createDiscoverRequest({ id, revision: LATEST_MODERN_REVISION, clientInfo });
}
