/**
 * A name as one segment of a URL, which means the same wherever it is written and needs no escapes. [RFC 3986 2.3] Dots in
 * front would make it a step in a path, or a hidden file. Undefined: nothing is left of the name.
 */
export function toSegment(name: string): string | undefined {
  const segment = name
    .replaceAll(/[^A-Za-z0-9._~-]+/g, '-')
    .replace(/^[-.]+/, '')
    .replace(/-+$/, '');
  return segment === '' ? undefined : segment;
}
