/**
 * `server/discover`, which replaces the handshake in the modern era. It is also the safest request to tell the eras
 * apart.
 */
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
import { ERAS, type Era, LATEST_MODERN_REVISION } from './revisions.ts';

export interface ModernRequestOptions {
  readonly id: JsonRpcId;
  readonly method: string;
  /** The revision named in the envelope. The bridge need not support it. */
  readonly revision: string;
  readonly clientInfo: Implementation;
  readonly params?: Fields;
}

/** A request of the bridge itself, with an envelope that declares no capabilities. */
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

/** The headers for a request that needs no `Mcp-Name`. [spec 2026-07-28 transports/streamable-http#request-metadata] */
export function modernHeaders(method: string, revision: string): Readonly<Record<string, string>> {
  return { [PROTOCOL_VERSION_HEADER_OUT]: revision, [METHOD_HEADER_OUT]: method };
}

/** A DiscoverResult, reduced to the members that servers of all builds have. */
export interface Discovery {
  readonly supportedVersions: readonly string[];
  readonly capabilities: Fields;
  readonly serverInfo: Implementation | undefined;
  readonly instructions: string | undefined;
}

/** Returns undefined if the value is no DiscoverResult. Missing cache hints and a missing `resultType` are accepted. */
export function parseDiscovery(result: unknown): Discovery | undefined {
  const fields = asFields(result);
  if (fields === undefined || !isStringArray(fields.supportedVersions)) return undefined;
  const { supportedVersions, capabilities, instructions, _meta, serverInfo } = fields;
  return {
    supportedVersions,
    capabilities: asFields(capabilities) ?? {},
    // Draft builds have it beside the capabilities, as InitializeResult does.
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
 * Creates a request that every server of the era must answer, and can answer at once. An error proves that the server
 * is alive as well. Legacy servers get a `ping` [spec 2025-11-25 basic/utilities/ping#behavior-requirements];
 * 2026-07-28 has no ping, but servers must implement `server/discover`. [spec 2026-07-28 changelog]
 */
export function createLifeQuestion({ era, id, clientInfo }: LifeQuestionOptions): Frame {
  if (ERAS[era].lifeQuestion === 'ping') return requestFrame(id, PING);
  return createDiscoverRequest({ id, revision: LATEST_MODERN_REVISION, clientInfo });
}
