/** Values of the options about logging in, as parse-value.ts has the others. */
import { isLoopback } from '../http/addresses.ts';
import type { Parsed } from './parse-value.ts';

/** [RFC 8252 7.3] http on this machine; with port 0, any that is free. */
export function parseCallback(text: string): Parsed<URL> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHere = url?.protocol === 'http:' && isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  // A cookie is set for the path, and a semicolon would end it there. [RFC 6265 4.1.1]
  if (url !== undefined && isHere && isPlain && !url.pathname.includes(';')) return { ok: true, value: url };
  return {
    ok: false,
    expected: 'an http URL on this machine, like http://127.0.0.1:3334/callback or http://localhost:3334/callback',
  };
}

/** [spec 2026-07-28 basic/authorization/client-registration#implementation-requirements] https, and a path */
export function parseClientDocument(text: string): Parsed<string> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.hash === '' && url.username === '' && url.password === '';
  // Kept as written: it is an id, compared as text.
  if (url?.protocol === 'https:' && url.pathname !== '/' && isPlain) return { ok: true, value: text };
  return { ok: false, expected: 'the https URL of a document that describes the client, with a path' };
}
