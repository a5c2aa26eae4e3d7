/** What a client says of itself, as it goes on to a server of the other era. */
import type { Implementation } from './meta.ts';
import type { Fields } from './payload.ts';

/** Characters of `clientInfo` as JSON that are passed on, and kept as long as a session; icons, for one, may be pictures. */
export const MAX_INFO_LENGTH = 4096;
/** Name and version are cut to this many characters where the whole is over its limit. */
const MAX_NAME_LENGTH = 256;

/** The whole of it, or name and version where it is too long to be repeated. Both are strings. */
export function shortInfo(info: Fields): Fields {
  return JSON.stringify(info).length <= MAX_INFO_LENGTH ? info : { ...nameOf(info.name, info.version) };
}

/** What a legacy server is told of a modern client: who it is, and not how it looks. */
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
