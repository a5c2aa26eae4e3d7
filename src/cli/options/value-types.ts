/** Every kind of value that an option can have. */

import type { WatchedPath } from '../../config/server.ts';
import {
  parseIssuer,
  parseKeyLocation,
  parseKeySource,
  parseMappedHeader,
  parseScopes,
  parseTokenSource,
  type TokenPlace,
} from '../parse/listener/auth-value.ts';
import { parseHubPlace } from '../parse/listener/hub-place.ts';
import { parseSocketPath } from '../parse/listener/socket-path.ts';
import { parseGrpcPlace, parseStream } from '../parse/listener/stream-address.ts';
import { type PasswordPlace, parsePasswordPlace } from '../parse/servers/account-value.ts';
import { parseAssignment } from '../parse/servers/child-environment.ts';
import { parseForwardedHeader, parseHeader } from '../parse/servers/header-value.ts';
import {
  checkParameter,
  parseCallback,
  parseClientDocument,
  parseParameter,
  parseResource,
  parseTokenEndpoint,
} from '../parse/servers/login-value.ts';
import {
  checkRenaming,
  checkToolText,
  parseRenaming,
  parseToolText,
  type TextOfTool,
} from '../parse/servers/tool-value.ts';
import * as value from '../parse/value.ts';
import type { Parsed, ValueType } from './value-type.ts';

/** Returns the kind of value with another placeholder. */
export function named<T>(placeholder: string, type: ValueType<T>): ValueType<T> {
  return { ...type, placeholder };
}

export function choice<const T extends string>(placeholder: string, choices: readonly T[]): ValueType<T> {
  return { placeholder, choices, read: value.parseChoice(choices) };
}

function numeric(placeholder: string, read: (text: string) => Parsed<number>): ValueType<number> {
  return { placeholder, read, typescript: 'number' };
}

/** Says how the aggregate shows tools, or that there is none. */
export const aggregate: ValueType<'off' | 'all' | 'search'> = {
  placeholder: 'what',
  choices: ['true', 'search', 'false'],
  read: value.parseAggregate,
  typescript: "boolean | 'search'",
};
export const onOrOff: ValueType<boolean> = { placeholder: '', read: value.parseFlag, typescript: 'boolean' };
export const text: ValueType<string> = { placeholder: 'text', read: value.parseText };

export const count = numeric('count', value.parseCount);
export const positiveCount = numeric('count', value.parsePositiveCount);
export const jsonDepth = numeric('levels', value.parseJsonDepth);
export const port = numeric('port', value.parsePort);
export const fileMode: ValueType<number> = { placeholder: 'mode', read: value.parseFileMode };
export const size: ValueType<number> = { placeholder: 'size', read: value.parseMessageSize, typescript: 'Size' };
/** Sizes of which 0 means no limit. */
export const fileSize: ValueType<number> = { ...size, read: value.parseFileSize };
export const resultSize: ValueType<number> = { ...size, read: value.parseResultSize };

export const duration: ValueType<number> = {
  placeholder: 'duration',
  read: value.parseDuration,
  typescript: 'Duration',
};
export const positiveDuration: ValueType<number> = { ...duration, read: value.parsePositiveDuration };
export const lease: ValueType<number> = { ...duration, read: value.parseLease };
/** A factor of which 0 means without pauses. */
export const replaySpeed = numeric('factor', value.parseReplaySpeed);
/** The length of a period in the past. */
export const period: ValueType<number> = { ...duration, read: value.parseWindow };

export const file: ValueType<string> = { placeholder: 'file', completes: 'file', read: value.parsePath };
export const watchedPath: ValueType<WatchedPath> = {
  placeholder: 'path|glob',
  completes: 'file',
  // A comma may be part of a pattern.
  separator: '\n',
  read: value.parseWatchedPath,
};
export const directory: ValueType<string> = { placeholder: 'directory', completes: 'directory', read: value.parsePath };
export const socketPath: ValueType<string> = { placeholder: 'path', completes: 'file', read: parseSocketPath };

export const listenHost: ValueType<string> = { placeholder: 'address', read: value.parseListenHost };
export const listenedStream = { placeholder: 'address', read: parseStream };
export const listenedGrpc = { placeholder: 'address', read: parseGrpcPlace };
export const endpointPath: ValueType<string> = { placeholder: 'path', read: value.parseEndpointPath };
export const sunset = { placeholder: 'date', read: value.parseSunset };
export const baseUrl: ValueType<URL> = { placeholder: 'url', read: value.parseBaseUrl };
/** The origin of this replica. */
export const ownOrigin: ValueType<URL> = { placeholder: 'url', read: value.parseOwnOrigin };
export const allowedHost: ValueType<string> = { placeholder: 'name', read: value.parseAllowedHost };
export const origin: ValueType<string> = { placeholder: 'origin', read: value.parseOrigin };

/** The place of a token. @param option the option that takes it, which the message about a token in its place names */
export function tokenSource(option: string): ValueType<TokenPlace> {
  return {
    placeholder: 'source',
    read: (written, context) => parseTokenSource(written, context, option),
    isSecret: true,
  };
}
export const passwordPlace: ValueType<PasswordPlace> = {
  placeholder: 'env:NAME|file:PATH',
  read: parsePasswordPlace,
  isSecret: true,
};
export const keySource = { placeholder: 'env:NAME|file:PATH', read: parseKeySource, isSecret: true } as const;
export const issuer: ValueType<string> = { placeholder: 'url', read: parseIssuer };
export const keyLocation = { placeholder: 'source', completes: 'file', read: parseKeyLocation } as const;
/** A scope, or several with spaces between them. */
export const scopes: ValueType<readonly string[]> = { placeholder: 'scope', read: parseScopes };

export const storePrefix: ValueType<string> = { placeholder: 'text', read: value.parseStorePrefix };
export const namePattern: ValueType<string> = { placeholder: 'glob', read: value.parseNamePattern };
export const mappedHeader = { placeholder: 'Name=VARIABLE', read: parseMappedHeader };
/** A tool's new name; the name that the server gives the tool comes first. */
export const renaming: ValueType<TextOfTool> = {
  placeholder: 'OLD=NEW',
  read: parseRenaming,
  readMember: checkRenaming,
};
/** A text for a tool; the name that the server gives the tool comes first. */
export const toolText: ValueType<TextOfTool> = {
  placeholder: 'NAME=TEXT',
  separator: '\n',
  read: parseToolText,
  readMember: checkToolText,
};
export const assignment = { placeholder: 'NAME=value', read: parseAssignment, isSecret: true } as const;

export const header: ValueType<{ readonly name: string; readonly value: string }> = {
  placeholder: 'Name: value',
  separator: '\n',
  read: (written, { variables }) => parseHeader(written, variables),
};
export const forwardedHeader = { placeholder: 'name', read: parseForwardedHeader };
export const hubPlace = { placeholder: 'url', separator: '\n', read: parseHubPlace } as const;

export const tokenEndpoint: ValueType<URL> = { placeholder: 'url', read: parseTokenEndpoint };
export const clientDocument: ValueType<string> = { placeholder: 'url', read: parseClientDocument };
export const resource = { placeholder: 'uri', read: parseResource };
export const callback: ValueType<URL> = { placeholder: 'url', read: parseCallback };
export const parameter: ValueType<readonly [name: string, value: string]> = {
  placeholder: 'name=value',
  separator: '\n',
  isSecret: true,
  read: parseParameter,
  readMember: checkParameter,
};
