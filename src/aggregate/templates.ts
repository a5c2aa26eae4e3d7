/** URI templates of RFC 6570, as far as it takes to tell which of them may have made a URI. */

/**
 * Returns how much of a URI a template writes itself, or undefined if the template cannot have made it. The more there is,
 * the better the template fits. The search goes through the URI once for each literal part.
 */
export function fitOf(template: string, uri: string): number | undefined {
  const literals = template.split(/\{[^{}]*\}/);
  const [first = '', ...others] = literals;
  const last = others.pop();
  if (!uri.startsWith(first)) return undefined;
  if (last === undefined) return uri === first ? uri.length : undefined;
  let at = first.length;
  for (const literal of others) {
    const found = uri.indexOf(literal, at);
    if (found === -1) return undefined;
    at = found + literal.length;
  }
  // An expression at the end may be for a query, which can be absent.
  if (!uri.endsWith(last) || uri.length - last.length < at) return undefined;
  return literals.reduce((sum, { length }) => sum + length, 0);
}
