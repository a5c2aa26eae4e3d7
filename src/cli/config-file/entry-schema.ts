/**
 * The schema of a server's entry, with the keys of all hosts: apart from the unit of `timeout`, a key has the same
 * meaning in every host. This module imports none of ours, so that it and zod can be a separate file in dist/; see
 * scripts/build.js. An error message is the expected form, to be inserted into a sentence.
 */
import * as z from 'zod/mini';

// Compiling a schema to code pays off for thousands of values, and a file has about a hundred.
z.config({ jitless: true });

const text = z.string('a string');
const flag = z.boolean('true or false');
const texts = z.array(text, 'an array of strings');
const duration = z.number('a number').check(z.minimum(0, 'a number that is not negative'));
const headers = z.record(z.string(), text, 'an object of names and strings');
/** In VS Code, null removes a variable. */
const value = z.union([text, z.number(), z.boolean(), z.null()], 'a string, a number, or true or false');
const variables = z.record(z.string(), value, 'an object of names and strings');
/** The form of a command in older files of Zed. */
const program = z.looseObject({ path: text, args: z.optional(texts), env: z.optional(variables) });
const copied = z.union([text, z.looseObject({ name: text })], 'the name of a variable');
const timeouts = z.looseObject({
  request: z.optional(duration),
  execution: z.optional(duration),
});

/** The keys that are read here. */
export const ENTRY_SHAPE = {
  type: z.optional(text),
  transport: z.optional(text),
  transportType: z.optional(text),
  command: z.optional(z.union([text, texts, program], 'a string, or an array of strings')),
  cmd: z.optional(text),
  args: z.optional(texts),
  env: z.optional(variables),
  environment: z.optional(variables),
  envs: z.optional(variables),
  env_vars: z.optional(z.array(copied, 'an array of names')),
  env_keys: z.optional(texts),
  envFile: z.optional(text),
  cwd: z.optional(text),
  url: z.optional(text),
  serverUrl: z.optional(text),
  httpUrl: z.optional(text),
  uri: z.optional(text),
  baseUrl: z.optional(text),
  socket: z.optional(text),
  username: z.optional(text),
  password: z.optional(text),
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
  // Copilot has a list, Codex a table with each tool, Hermes lists of names.
  tools: z.optional(z.union([texts, z.looseObject({})], 'an array of strings')),
  protocolEra: z.optional(text),
};

export const ENTRY_SCHEMA = z.looseObject(ENTRY_SHAPE, 'an object');
export type Entry = z.infer<typeof ENTRY_SCHEMA>;

export interface EntryProblem {
  readonly path: readonly (string | number)[];
  readonly expected: string;
  /** True for a value of the wrong type; false for a value that is wrong in itself, such as a negative number. */
  readonly isOfWrongKind: boolean;
}

export interface CheckedEntry {
  /** The keys without problems. */
  readonly entry: Entry;
  readonly problems: readonly EntryProblem[];
}

/**
 * Checks each key by itself: the whole schema would look for all of its keys in every entry, and an entry has about
 * four.
 * @param plain has no keys besides those of `ENTRY_SHAPE`
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
  return { entry, problems };
}

const KEYS = Object.entries(ENTRY_SHAPE);

/**
 * Translates an issue of zod. For a union, it is the issue of the alternative that was meant, if one matches in kind:
 * the wrong item of a list, for example, instead of the list.
 */
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
