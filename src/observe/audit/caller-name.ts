/** Longer names of callers are cut. */
const MAX_LENGTH = 512;

/**
 * What a caller is called. Where headers of its requests become variables of its server (`--map-header`), their values are
 * part of the principal, and may well be credentials: they are not part of the name. [http/auth/callers.ts]
 */
export function callerName(principal: string | undefined): string | undefined {
  if (principal?.startsWith('[') !== true) return principal?.slice(0, MAX_LENGTH);
  try {
    const [name]: unknown[] = JSON.parse(principal);
    if (typeof name === 'string') return name.slice(0, MAX_LENGTH);
  } catch {
    // It is shown by nothing then: better no name than a secret.
  }
  return undefined;
}
