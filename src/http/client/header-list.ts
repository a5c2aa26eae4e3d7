/**
 * The head of a request as a list of names and values in turn. Node writes a list as it is; of an object it checks and copies
 * each header first, to have it looked up and changed, which is a sixth of what a small request costs it.
 */

type Headers = Readonly<Record<string, string>>;

/** Each header once: where names differ in case alone, the last counts, as Node has it with an object. */
export function listHeaders(headers: Headers): readonly string[] {
  const named = new Map<string, readonly [string, string]>();
  for (const [name, value] of Object.entries(headers)) named.set(name.toLowerCase(), [name, value]);
  return [...named.values()].flat();
}

/** What Node adds by itself to the headers of an object: where the request goes, and how long its body is. */
export function completeHead(listed: readonly string[], host: string | undefined, body: Buffer | undefined): string[] {
  const head = [...listed];
  if (host !== undefined) head.push('Host', host);
  if (body !== undefined) head.push('Content-Length', String(body.length));
  return head;
}
