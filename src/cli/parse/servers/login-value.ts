/** Parsers for the values of login options. */
import type { ResourceChoice } from '../../../config/remote.ts';
import { isLoopback } from '../../../http/addresses.ts';
import type { Parsed } from '../../options/value-type.ts';
import { parseTrustworthyUrl } from '../listener/auth-value.ts';

/** [RFC 8252 7.3] Accepts an http URL on this machine. Port 0 means any free port. */
export function parseCallback(text: string): Parsed<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHere = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  // The path becomes the Path attribute of a cookie, which a semicolon would end. [RFC 6265 4.1.1]
  if (url !== undefined && isHere && isPlain && !url.pathname.includes(';')) return { ok: true, value: url };
  return {
    ok: false,
    expected: 'an http URL on this machine, like http://127.0.0.1:3334/callback or http://localhost:3334/callback',
  };
}

/** Refuses unencrypted addresses on other machines, as secrets and codes are sent to this URL. */
export function parseTokenEndpoint(text: string): Parsed<URL> {
  const url = parseTrustworthyUrl(text);
  return url === undefined
    ? { ok: false, expected: 'the https URL at which tokens are given (http only on this machine)' }
    : { ok: true, value: url };
}

/** Parses `name=value`, with the characters that a name may have. [RFC 6749 A] */
export function parseParameter(text: string): Parsed<readonly [name: string, value: string]> {
  const [, name = '', content = ''] = /^([^=]*)=(.*)$/su.exec(text) ?? [];
  return checkParameter(name, content);
}

export function checkParameter(name: string, content: string): Parsed<readonly [name: string, value: string]> {
  if (/^[A-Za-z0-9._-]+$/.test(name) && /^[^\p{Cc}]*$/u.test(content)) return { ok: true, value: [name, content] };
  return { ok: false, expected: 'the name of a parameter, "=" and its value' };
}

/** [RFC 8707 2] Accepts an absolute URI without a fragment, or `none`. */
export function parseResource(text: string): Parsed<ResourceChoice> {
  if (text === 'none') return { ok: true, value: { kind: 'left-out' } };
  // The URI is kept as written: authorization servers compare it as text.
  if (URL.canParse(text) && !text.includes('#') && !/\s/.test(text))
    return { ok: true, value: { kind: 'named', uri: text } };
  return { ok: false, expected: 'the URI of a resource without a fragment, like https://example.com/mcp, or none' };
}

/**
 * Accepts an https URL with a path. [spec 2026-07-28
 * basic/authorization/client-registration#implementation-requirements]
 */
export function parseClientDocument(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.hash === '' && url.username === '' && url.password === '';
  // The URL is kept as written: it serves as the client's id, which is compared as text.
  if (url?.protocol === 'https:' && url.pathname !== '/' && isPlain) return { ok: true, value: text };
  return { ok: false, expected: 'the https URL of a document that describes the client, with a path' };
}
