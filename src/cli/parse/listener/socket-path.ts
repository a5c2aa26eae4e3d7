/** Paths of Unix sockets and names of named pipes, as users write them. */
import { isPipePath, pipePath } from '../../../http/socket-addresses.ts';
import type { Parsed, ReadingContext } from '../../options/value-type.ts';

/** Parses the value of `--socket`: a path, absolute or relative, or a unix:// or pipe:// URL as clients use it. */
export function parseSocketPath(
  text: string,
  { resolvePath, platform }: Pick<ReadingContext, 'resolvePath' | 'platform'>,
): Parsed<string> {
  const [, scheme, rest = ''] = /^(unix|pipe):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme !== undefined) return parseSocketUrlPath(scheme.toLowerCase(), rest, platform);
  if (text === '' || text.includes('\0') || text.endsWith('/')) return refuse(formOn(platform));
  if (platform !== 'win32') return { ok: true, value: resolvePath(text) };
  return isPipePath(text) ? { ok: true, value: text } : refuse(formOn(platform));
}

/** Parses the part of a URL after `unix://` or `pipe://`, up to its fragment. */
export function parseSocketUrlPath(scheme: string, written: string, platform: NodeJS.Platform): Parsed<string> {
  const path = decode(written);
  if (path === undefined || path.includes('\0')) return refuse('a path whose percent signs can be decoded');
  if (scheme === 'pipe') {
    if (platform !== 'win32') return refuse('a Unix socket, like unix:///run/mcp.sock: named pipes are for Windows');
    // VS Code also writes the folder of all pipes, `pipe/`.
    const name = path.replace(/^\/(pipe\/)?/, '');
    return name === '' || !path.startsWith('/')
      ? refuse('the name of a pipe after three slashes, like pipe:///mcp')
      : { ok: true, value: pipePath(name) };
  }
  if (platform === 'win32') return refuse('a named pipe, like pipe:///mcp: Unix sockets cannot be used on Windows');
  if (!path.startsWith('/') || path.endsWith('/'))
    return refuse('an absolute path after unix://, like unix:///run/mcp.sock');
  return { ok: true, value: path };
}

function formOn(platform: NodeJS.Platform): string {
  return platform === 'win32'
    ? String.raw`the name of a pipe, like \\.\pipe\mcp`
    : 'the path of a socket, like /run/user/1000/mcp.sock';
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function refuse(expected: string): Parsed<never> {
  return { ok: false, expected };
}
