/** Parsers for headers as users write them. Messages never show the value of a header. */
import { validateHeaderValue } from 'node:http';
import type { ForwardedHeader } from '../../../config/remote.ts';
import { isConfigurable, isForwardable } from '../../../http/headers.ts';
import type { Explained, Parsed, ReadingContext } from '../../options/value-type.ts';
import type { Environment } from './child-environment.ts';

/** A header to send. */
export interface HeaderField {
  /** Lower case. */
  readonly name: string;
  readonly value: string;
}

/** A failure completes a sentence that begins with the place of the header. */
export type ParsedHeader = { readonly ok: true; readonly value: HeaderField } | Explained;

/** [RFC 9110 5.6.2] token */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/**
 * Parses `Name: value` and returns the name in lower case. `${NAME}` in the value is replaced from the environment,
 * unless the text is expanded already.
 */
export function parseHeader(text: string, variables: ReadingContext['variables']): ParsedHeader {
  const colon = text.indexOf(':');
  const name = text.slice(0, Math.max(0, colon)).trim();
  return checkHeader(name, text.slice(colon + 1).trim(), variables);
}

export function checkHeader(name: string, written: string, variables: ReadingContext['variables']): ParsedHeader {
  if (!NAME.test(name)) return refuse("expected 'Name: value'; got something else");
  if (isOurs(name.toLowerCase())) {
    return refuse(`${name} is written by mcp-portage itself, as HTTP and MCP want it; leave it out`);
  }
  const { value, missing } =
    variables === 'expanded' ? { value: written, missing: undefined } : expand(written, variables);
  if (missing !== undefined) {
    return refuse(
      `the value of ${name} names the variable ${missing}, which is not set here; set it, or correct its name`,
    );
  }
  if (!isSendable(name, value)) {
    return refuse(`the value of ${name} has a character that HTTP headers cannot hold, such as a line break`);
  }
  return { ok: true, value: { name: name.toLowerCase(), value } };
}

/**
 * Headers in which clients authenticate themselves. They are never forwarded under their own names, even on request.
 */
const CREDENTIALS: readonly string[] = ['authorization', 'cookie'];

/** Parses the name of a client's header whose value may be passed on to the server, and returns it in lower case. */
export function parseForwardedName(text: string, context: Pick<ReadingContext, 'nameOf'>): Parsed<string> {
  const parsed = parseForwardedHeader(text, context);
  if (!parsed.ok) return parsed;
  return text.includes(':') ? { ok: false, expected: A_NAME } : { ok: true, value: parsed.value.name };
}

/** Parses `X-Request-Id`, or `X-Api-Key: Authorization` for a header with another name in requests to the server. */
export function parseForwardedHeader(
  text: string,
  { nameOf }: Pick<ReadingContext, 'nameOf'>,
): Parsed<ForwardedHeader> {
  const [name = '', sentAs = name, ...more] = text.split(':').map((part) => part.trim().toLowerCase());
  const header: ForwardedHeader = { name, sentAs };
  const isForwarded = [name, sentAs].every((either) => NAME.test(either) && !isOurs(either)) && isForwardable(header);
  if (isForwarded && more.length === 0) return { ok: true, value: header };
  if (!CREDENTIALS.includes(name)) return { ok: false, expected: A_NAME };
  const ownCredential = `${nameOf('bearerTokenFile')} or ${nameOf('header')}`;
  return {
    ok: false,
    expected: `a header that is no credential: MCP forbids passing on what clients show to mcp-portage, since the server could use it elsewhere in their name (give mcp-portage a credential of its own with ${ownCredential})`,
  };
}

const A_NAME = 'the name of a header that is not about HTTP or MCP themselves, like X-Request-Id';

/**
 * Returns true for headers that the bridge writes itself: Host comes from the URL, and `content-*` describe the body.
 */
function isOurs(name: string): boolean {
  return name === 'host' || name.startsWith('content-') || !isConfigurable(name);
}

/** Replaces variables once: inserted values are not expanded again. An empty variable counts as not set. */
function expand(text: string, env: Environment): { readonly value: string; readonly missing: string | undefined } {
  let missing: string | undefined;
  const value = text.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = env[name];
    if (!found) missing ??= name;
    // A file that was read into a variable often ends with a line break.
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
