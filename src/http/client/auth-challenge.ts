import type { IncomingHttpHeaders } from 'node:http';

/** What a refusal says about the way in. */
export interface AuthChallenge {
  /** `Bearer`, mostly. */
  readonly scheme: string | undefined;
  /** Where the server's protected resource metadata is. [RFC 9728 5.1] */
  readonly resourceMetadata: URL | undefined;
  /** `invalid_token`, `insufficient_scope`. [RFC 6750 3.1] */
  readonly error: string | undefined;
  /** What a token has to allow; empty: nothing is said of that. */
  readonly scopes: readonly string[];
}

/**
 * Space, a separator, a quoted text (which may lack its end) or a run of other characters. Every character begins one of
 * these, and its first character tells which, so a text is read once from its beginning to its end.
 */
const LEXEME = /\s+|[,=]|"(?:[^"\\]|\\.)*"?|[^\s,="]+/gs;
const NAME = /^[A-Za-z0-9_-]+$/;
const QUOTED = /^"(.*)"$/s;

/** The parts that a value of `WWW-Authenticate` consists of: joined, they are that value. */
export function* lexAuthChallenge(text: string): Iterable<string> {
  for (const [lexeme] of text.matchAll(LEXEME)) yield lexeme;
}

/** Reads `WWW-Authenticate`. Several challenges are read as one: only one of them names metadata. */
export function parseAuthChallenge(headers: IncomingHttpHeaders): AuthChallenge {
  const text = headers['www-authenticate'] ?? '';
  const parameters = readParameters(text);
  const metadata = parameters.get('resource_metadata');
  const isWeb = metadata !== undefined && /^https?:/i.test(metadata) && URL.canParse(metadata);
  return {
    scheme: /^\s*([A-Za-z][A-Za-z0-9-]*)(?=\s|,|$)/.exec(text)?.[1],
    resourceMetadata: isWeb ? new URL(metadata) : undefined,
    error: parameters.get('error'),
    scopes: splitScopes(parameters.get('scope') ?? ''),
  };
}

/** By name in lower case; of a name that comes twice the first one counts. */
function readParameters(text: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  let word: string | undefined;
  /** Name and value of the parameter that is being read; an unquoted value may come in several parts. */
  let name: string | undefined;
  let parts: string[] = [];
  const finish = (value: string): void => {
    if (name !== undefined && value !== '' && !parameters.has(name)) parameters.set(name, value);
    name = undefined;
    parts = [];
    word = undefined;
  };
  for (const lexeme of lexAuthChallenge(text)) {
    const isSpace = lexeme.trim() === '';
    if (name === undefined) {
      if (lexeme === '=' && word !== undefined && NAME.test(word)) name = word.toLowerCase();
      else if (!isSpace) word = lexeme;
    } else if (lexeme === ',' || (isSpace && parts.length > 0)) {
      finish(parts.join(''));
    } else if (lexeme.startsWith('"')) {
      const quoted = parts.length === 0 ? QUOTED.exec(lexeme)?.[1] : undefined;
      finish(quoted?.replace(/\\(.)/gs, '$1') ?? parts.join(''));
    } else if (!isSpace) {
      parts.push(lexeme);
    }
  }
  finish(parts.join(''));
  return parameters;
}

function splitScopes(text: string): readonly string[] {
  return text.split(' ').filter((scope) => scope !== '');
}
