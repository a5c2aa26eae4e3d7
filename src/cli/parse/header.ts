/** Headers as users write them: on the command line, in the environment and in files. Values are never shown. */
import { validateHeaderValue } from 'node:http';
import { isConfigurable, isForwardable } from '../../http/request-headers.ts';
import type { Environment } from './child-environment.ts';
import type { Parsed } from './value.ts';

export type ParsedHeader =
  | { readonly ok: true; readonly name: string; readonly value: string }
  /** The rest of a sentence that begins with where the header stands. */
  | { readonly ok: false; readonly problem: string };

/** [RFC 9110 5.6.2] token */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** `Name: value`, `${NAME}` in the value replaced from the environment. The name comes out in lower case. */
export function parseHeader(text: string, env: Environment): ParsedHeader {
  const colon = text.indexOf(':');
  const name = text.slice(0, Math.max(0, colon)).trim();
  if (!NAME.test(name)) return refuse("expected 'Name: value'; got something else");
  if (isOurs(name.toLowerCase())) {
    return refuse(`${name} is written by mcp-portage itself, as HTTP and MCP want it; leave it out`);
  }
  const { value, missing } = expand(text.slice(colon + 1).trim(), env);
  if (missing !== undefined) {
    return refuse(
      `the value of ${name} names the variable ${missing}, which is not set here; set it, or correct its name`,
    );
  }
  if (!isSendable(name, value)) {
    return refuse(`the value of ${name} has a character that HTTP headers cannot hold, such as a line break`);
  }
  return { ok: true, name: name.toLowerCase(), value };
}

/** What clients show to prove who they are; never goes on, whoever asks for it. */
const CREDENTIALS: readonly string[] = ['authorization', 'cookie'];

/** A name for --forward-header, in lower case. */
export function parseForwardedName(text: string): Parsed<string> {
  const name = text.toLowerCase();
  if (CREDENTIALS.includes(name)) return { ok: false, expected: NO_CREDENTIALS };
  if (NAME.test(name) && isForwardable(name) && !isOurs(name)) return { ok: true, value: name };
  return { ok: false, expected: 'the name of a header that is not about HTTP or MCP themselves, like X-Request-Id' };
}

const NO_CREDENTIALS =
  'a header that is no credential: MCP forbids passing on what clients show to mcp-portage, since the server could use it elsewhere in their name (give mcp-portage a credential of its own with --bearer-token-file or --header)';

/** Host is said by the URL; what describes the body is for whoever writes it. */
function isOurs(name: string): boolean {
  return name === 'host' || name.startsWith('content-') || !isConfigurable(name);
}

/** An empty variable counts as not set, as everywhere here. Values put in are not expanded again. */
function expand(text: string, env: Environment): { readonly value: string; readonly missing: string | undefined } {
  let missing: string | undefined;
  const value = text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = env[name];
    if (!found) missing ??= name;
    // A file read into a variable often brings its last line break along.
    return found?.trimEnd() ?? '';
  });
  return { value, missing };
}

function isSendable(name: string, value: string): boolean {
  try {
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

function refuse(problem: string): ParsedHeader {
  return { ok: false, problem };
}
