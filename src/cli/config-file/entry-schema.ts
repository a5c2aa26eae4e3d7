/**
 * What a server's entry may hold, in the words of every host at once: what one host calls a key no other uses for something
 * else, but for the unit of `timeout`. Nothing of ours is imported, so that this module and zod can be a file of their own
 * in dist/; see scripts/build.js. The messages are what had been expected, for a sentence that is built around them.
 */
import * as z from 'zod/mini';

// Code made for a schema pays for thousands of values, not for a hundred.
z.config({ jitless: true });

const text = z.string('a text');
const flag = z.boolean('true or false');
const texts = z.array(text, 'a list of texts');
const duration = z.number('a number').check(z.minimum(0, 'a number that is not negative'));
const headers = z.record(z.string(), text, 'an object of names and texts');
/** VS Code removes a variable with null. */
const value = z.union([text, z.number(), z.boolean(), z.null()], 'a text, a number, or true or false');
const variables = z.record(z.string(), value, 'an object of names and texts');
/** Zed has written a command so. */
const program = z.looseObject({ path: text, args: z.optional(texts), env: z.optional(variables) });
const copied = z.union([text, z.looseObject({ name: text })], 'the name of a variable');
const timeouts = z.looseObject({
  request: z.optional(duration),
  execution: z.optional(duration),
});

/** The keys that mean something to us. */
export const ENTRY_SHAPE = {
  type: z.optional(text),
  transport: z.optional(text),
  transportType: z.optional(text),
  command: z.optional(z.union([text, texts, program], 'a text, or a list of texts')),
  cmd: z.optional(text),
  args: z.optional(texts),
  env: z.optional(variables),
  environment: z.optional(variables),
  envs: z.optional(variables),
  env_vars: z.optional(z.array(copied, 'a list of names')),
  env_keys: z.optional(texts),
  envFile: z.optional(text),
  cwd: z.optional(text),
  url: z.optional(text),
  serverUrl: z.optional(text),
  httpUrl: z.optional(text),
  uri: z.optional(text),
  baseUrl: z.optional(text),
  socket: z.optional(text),
  headers: z.optional(headers),
  http_headers: z.optional(headers),
  requestOptions: z.optional(z.looseObject({ headers: z.optional(headers) }, 'an object')),
  env_http_headers: z.optional(headers),
  bearer_token_env_var: z.optional(text),
  disabled: z.optional(flag),
  enabled: z.optional(flag),
  active: z.optional(flag),
  isActive: z.optional(flag),
  required: z.optional(flag),
  timeout: z.optional(z.union([duration, timeouts], 'a number, or an object with the time for a request')),
  tool_timeout_sec: z.optional(duration),
  includeTools: z.optional(texts),
  enabled_tools: z.optional(texts),
  available_tools: z.optional(texts),
  excludeTools: z.optional(texts),
  disabled_tools: z.optional(texts),
  disabledTools: z.optional(texts),
  // A list for Copilot, a table about each tool for Codex, lists of names for Hermes.
  tools: z.optional(z.union([texts, z.looseObject({})], 'a list of texts')),
  protocolEra: z.optional(text),
};

export const ENTRY_SCHEMA = z.looseObject(ENTRY_SHAPE, 'an object');
export type Entry = z.infer<typeof ENTRY_SCHEMA>;

export interface EntryProblem {
  readonly path: readonly (string | number)[];
  readonly expected: string;
  /** Whether another kind of value would be right; otherwise it is the value itself that is not. */
  readonly isOfWrongKind: boolean;
}

export type CheckedEntry =
  | { readonly ok: true; readonly entry: Entry }
  | { readonly ok: false; readonly problems: readonly EntryProblem[] };

/**
 * Each key by itself: the schema as a whole would look for all thirty of them in every entry, which has four.
 * @param plain holds no other keys than those of `ENTRY_SHAPE`
 */
export function checkEntry(plain: ReadonlyMap<string, unknown>): CheckedEntry {
  const problems: EntryProblem[] = [];
  const entry: Record<string, unknown> = {};
  for (const [key, schema] of KEYS) {
    if (!plain.has(key)) continue;
    const checked = schema.safeParse(plain.get(key));
    if (checked.success) entry[key] = checked.data;
    else problems.push(...checked.error.issues.map((issue) => toProblem(issue, [key])));
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, entry };
}

const KEYS = Object.entries(ENTRY_SHAPE);

/** Where one of several forms was meant, the mistake lies deeper: an item of a list, not the list. */
function toProblem(issue: z.core.$ZodIssue, above: readonly PropertyKey[]): EntryProblem {
  const path = [...above, ...issue.path];
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.find((issues) => issues.every((inner) => inner.path.length > 0 || isOfValue(inner)));
    const first = meant?.[0];
    if (first !== undefined) return toProblem(first, path);
  }
  return {
    path: path.map((step) => (typeof step === 'number' ? step : String(step))),
    expected: issue.message,
    isOfWrongKind: !isOfValue(issue),
  };
}

function isOfValue({ code }: z.core.$ZodIssue): boolean {
  return code !== 'invalid_type' && code !== 'invalid_union';
}
