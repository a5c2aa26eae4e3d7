/**
 * What the entries of all these hosts look like. What a key is called differs; what it means hardly does. The messages are
 * what is expected.
 */
import {
  array,
  boolean,
  enum as choice,
  looseObject,
  number,
  optional,
  positive,
  record,
  string,
  union,
  unknown,
} from 'zod/mini';

const text = string({ error: 'a text' });
const texts = array(text, { error: 'a list of texts' });
const flag = boolean({ error: 'true or false' });
const above = (unit: string) => number({ error: unit }).check(positive({ error: `${unit} above 0` }));
const ms = above('a number of milliseconds');
const aNumber = number({ error: 'a number' });
const scalar = union([text, aNumber, flag], { error: 'a text, a number, true or false' });
const byName = { error: 'an object' };
const byNames = record(string(), text, byName);
const scalars = record(string(), scalar, byName);

/** How the hosts call the transports; none of them is a word for "find out". */
export const TYPES = {
  stdio: 'command',
  local: 'command',
  http: 'streamable-http',
  'streamable-http': 'streamable-http',
  streamableHttp: 'streamable-http',
  streamable_http: 'streamable-http',
  sse: 'sse',
  remote: 'auto',
} as const;

/** Keys that are read. A `url` may have variables in it, so that it is looked at later. */
export const ENTRY = looseObject(
  {
    command: optional(union([text, texts], { error: 'a text or a list of texts' })),
    args: optional(texts),
    env: optional(scalars),
    environment: optional(scalars),
    env_vars: optional(array(union([text, looseObject({ name: text })]), { error: 'a list of names' })),
    envFile: optional(text),
    cwd: optional(text),
    url: optional(text),
    serverUrl: optional(text),
    httpUrl: optional(text),
    type: optional(text),
    transport: optional(text),
    headers: optional(byNames),
    http_headers: optional(byNames),
    env_http_headers: optional(byNames),
    bearer_token_env_var: optional(text),
    disabled: optional(flag),
    enabled: optional(flag),
    timeout: optional(
      union([ms, looseObject({ request: optional(ms) })], { error: 'a number of milliseconds above 0' }),
    ),
    tool_timeout_sec: optional(above('a number of seconds')),
    includeTools: optional(texts),
    enabledTools: optional(texts),
    enabled_tools: optional(texts),
    excludeTools: optional(texts),
    disabledTools: optional(texts),
    disabled_tools: optional(texts),
    protocolEra: optional(choice(['auto', 'legacy', 'modern'], { error: 'auto, legacy or modern' })),
    required: optional(flag),
    portage: optional(record(string(), unknown(), byName)),
  },
  { error: 'an object' },
);

/** Said of one server under our own key in its entry, and nowhere else. */
export const ENTRY_MEMBERS = {
  required: flag,
  callers: array(string({ error: 'a name' }), { error: 'a list of names' }),
};

/** What the value of an option of ours may be, by its kind on the command line. */
export const OPTION_KINDS = {
  flag,
  value: union([text, aNumber], { error: 'a text or a number' }),
  list: union([text, texts], { error: 'a text or a list of texts' }),
};
