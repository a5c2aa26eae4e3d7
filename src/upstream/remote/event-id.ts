/** [spec WHATWG HTML server-sent events] an id travels back as UTF-8; Node takes header values as Latin-1. */
export function encodeEventId(id: string): string | undefined {
  const value = Buffer.from(id, 'utf8').toString('latin1');
  return /^[\t\x20-\x7e\x80-\xff]+$/.test(value) ? value : undefined;
}
