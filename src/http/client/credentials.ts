/**
 * Credentials that the bridge sends to a server: their renewal, bearer tokens in files, and the challenges of refusals.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';

/** The credentials that the bridge sends to one server. */
export interface Credentials {
  /**
   * Returns the headers for an attempt that is sent right away; undefined if there are none. Called again for each
   * retry and each redirect. Throws BridgeError ERR_UPSTREAM_AUTH.
   */
  show(method: string, url: URL): CredentialHeaders | undefined;
  /** Undefined if the bridge does not renew these credentials. */
  readonly renewal: CredentialRenewal | undefined;
  /** Ends renewals. May be called more than once. */
  close(): void;
}

export interface CredentialHeaders {
  readonly authorization: string;
  /** The DPoP proof of this attempt. Absent if the token is not bound to a key. */
  readonly dpop?: string;
}

/**
 * Credentials that the bridge obtains itself. Every request calls this, so the usual answers do not create a promise.
 */
export interface CredentialRenewal {
  /**
   * The time of the bridge's clock at which a renewal was last in progress: the current time during a renewal, and
   * undefined if there has been none. A renewal may take as long as a user needs, so the time limits for the server are
   * suspended meanwhile.
   */
  readonly lastUnderWayMs: number | undefined;
  /**
   * Called before a request is sent. Resolves when better credentials have arrived or cannot be obtained; never
   * rejects. Undefined if the request need not wait.
   */
  beforeRequest(): Promise<void> | undefined;
  /** Called when the server at this URL has accepted a request with this value of `Authorization`. */
  accepted(authorization: string, url: URL, headers: IncomingHttpHeaders): void;
  /**
   * Called with each 401 of a request, until it has returned true once. Returns true if the proof lacked only the nonce
   * that the refusal contains, so that the request can be sent again at once.
   */
  takesNonce(refusal: CredentialRefusal): boolean;
  /**
   * Called when the server has refused a request. Returns undefined if the credentials cannot be renewed. Never
   * rejects.
   */
  refused(refusal: CredentialRefusal): Promise<RenewalOutcome> | undefined;
}

export interface CredentialRefusal {
  readonly status: 401 | 403;
  readonly challenge: AuthChallenge;
  readonly headers: IncomingHttpHeaders;
  /** The URL that refused, after redirects. */
  readonly url: URL;
  /** The value of `Authorization` that the server refused. */
  readonly authorization: string | undefined;
  /** The address of the server that refused. Undefined behind a proxy, or if the connection is gone. */
  readonly peerAddress: string | undefined;
  /** Shows the user a page that the request waits for. Undefined if the request cannot reach its user. */
  readonly ask?: AskUser | undefined;
}

/** A page that the user has to open before a request can be served. */
export interface UserPrompt {
  /** Unique and unguessable. */
  readonly id: string;
  readonly message: string;
  readonly url: URL;
  /** Resolves when the login has succeeded or ended without success, so the page is no longer needed. */
  readonly over: Promise<'logged-in' | 'ended'>;
  /** The error for calls that do not wait for the user. */
  readonly error: BridgeError;
}

/** The user's answer to a prompt. `unshown` means that the client did not show it, for whatever reason. */
export type UserAnswer = 'accepted' | 'declined' | 'unshown';

/** Resolves with the user's answer. Returns undefined if the request cannot ask its user. */
export type AskUser = (prompt: UserPrompt) => Promise<UserAnswer> | undefined;

/**
 * - `renewed`: the credentials have changed, so the request is sent again.
 * - `refused`: the server offers no way to obtain others, so the refusal is passed on.
 * - `failed`: the renewal failed with this error.
 */
export type RenewalOutcome =
  | { readonly kind: 'renewed' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly error: BridgeError };

// ---- Bearer tokens

/** [RFC 6750 2.1] b64token. The pattern also keeps line breaks and other invalid characters out of the header. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Common servers accept 8 to 16 KiB of headers, so they would reject every request with a longer token. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

export function isBearerToken(text: string): boolean {
  return findTokenFault(text) === undefined;
}

/**
 * Returns why a text is not a bearer token, as the end of a sentence that does not quote it; undefined if it is one.
 */
export function findTokenFault(token: string): string | undefined {
  if (token === '') return 'is empty';
  if (token.length > MAX_TOKEN_LENGTH) {
    return `has ${token.length} characters, more than the ${MAX_TOKEN_LENGTH} that a bearer token may have`;
  }
  return TOKEN.test(token) ? undefined : 'holds something that is no bearer token';
}

/** A bearer token in a file that another program renews. Errors name the file, never its content. */
export class BearerTokenFile implements Credentials {
  readonly renewal = undefined;
  readonly #file: ChangingFile<string>;

  constructor(path: string) {
    this.#file = new ChangingFile(path, (text) => text.trim());
  }

  /**
   * Returns the token. Each call checks the file, which takes microseconds, and reads it again after a change. Throws
   * ERR_UPSTREAM_AUTH.
   */
  current(): string {
    const token = this.#read();
    const fault = findTokenFault(token);
    if (fault === undefined) return token;
    throw this.#error(`The bearer token file ${this.#file.path} ${fault}; expected one token and nothing else`);
  }

  show(): CredentialHeaders {
    return { authorization: `Bearer ${this.current()}` };
  }

  close(): void {}

  #read(): string {
    try {
      return this.#file.current();
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
      throw this.#error(`Cannot read the bearer token file ${this.#file.path} (${code})`, cause);
    }
  }

  #error(message: string, cause?: unknown): BridgeError {
    return new BridgeError('ERR_UPSTREAM_AUTH', `${message}.`, { cause });
  }
}

// ---- Challenges

/** The content of `WWW-Authenticate` in a refusal. */
export interface AuthChallenge {
  /** The first scheme of the header, usually `Bearer`. */
  readonly scheme: string | undefined;
  /** The URL of the server's protected resource metadata. [RFC 9728 5.1] */
  readonly resourceMetadata: URL | undefined;
  /** An error code such as `invalid_token` or `insufficient_scope`. [RFC 6750 3.1] */
  readonly error: string | undefined;
  /** The scopes that a token needs; empty if the server names none. */
  readonly scopes: readonly string[];
  /** Undefined if the server does not ask for a token that is bound to a key. */
  readonly dpop: DpopChallenge | undefined;
}

/** [RFC 9449 7.1] */
export interface DpopChallenge {
  /** True if the server offers DPoP without `Bearer`. */
  readonly isOnly: boolean;
  /** The algorithms of proofs that the server accepts; undefined if it does not list them. */
  readonly algorithms: readonly string[] | undefined;
  readonly error: string | undefined;
}

/**
 * Space, a separator, a quoted string (which may lack its closing quote) or a run of other characters. Every character
 * begins one of these, and the first character tells which, so a header is read in one pass.
 */
const LEXEME = /\s+|[,=]|"(?:[^"\\]|\\.)*"?|[^\s,="]+/gs;
const NAME = /^[A-Za-z0-9_-]+$/;
const QUOTED = /^"(.*)"$/s;

/** Yields the lexemes of a `WWW-Authenticate` value; joined, they are that value. */
export function* lexAuthChallenge(text: string): Iterable<string> {
  for (const [lexeme] of text.matchAll(LEXEME)) yield lexeme;
}

/**
 * Reads `WWW-Authenticate`. The parameters of all challenges are merged, because only one of them names metadata. The
 * parameters of DPoP are also read separately.
 */
export function parseAuthChallenge(headers: IncomingHttpHeaders): AuthChallenge {
  const text = headers['www-authenticate'] ?? '';
  const { parameters, schemes } = readChallenges(text);
  const metadata = parameters.get('resource_metadata');
  const isWeb = metadata !== undefined && /^https?:/i.test(metadata) && URL.canParse(metadata);
  return {
    scheme: /^\s*([A-Za-z][A-Za-z0-9-]*)(?=\s|,|$)/.exec(text)?.[1],
    resourceMetadata: isWeb ? new URL(metadata) : undefined,
    error: parameters.get('error'),
    scopes: splitWords(parameters.get('scope')),
    dpop: readDpopChallenge(schemes),
  };
}

function readDpopChallenge(schemes: ReadonlyMap<string, ReadonlyMap<string, string>>): DpopChallenge | undefined {
  const dpop = schemes.get('dpop');
  if (dpop === undefined) return undefined;
  const algorithms = splitWords(dpop.get('algs'));
  return {
    isOnly: !schemes.has('bearer'),
    algorithms: algorithms.length > 0 ? algorithms : undefined,
    error: dpop.get('error'),
  };
}

/**
 * `parameters` holds the parameters of all challenges, `schemes` those of each scheme. Names are in lower case. If a
 * name occurs more than once, its first value counts.
 */
interface Challenges {
  readonly parameters: ReadonlyMap<string, string>;
  readonly schemes: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

function readChallenges(text: string): Challenges {
  const parameters = new Map<string, string>();
  const schemes = new Map<string, Map<string, string>>();
  let ofScheme = new Map<string, string>();
  /** The latest word: the name of a parameter if `=` comes next, otherwise the name of a scheme. */
  let word: string | undefined;
  /** Name and value of the parameter being read. An unquoted value may consist of several lexemes. */
  let name: string | undefined;
  let parts: string[] = [];
  const begin = (next: string | undefined): void => {
    if (word !== undefined && NAME.test(word)) {
      const scheme = word.toLowerCase();
      ofScheme = schemes.get(scheme) ?? new Map();
      schemes.set(scheme, ofScheme);
    }
    word = next;
  };
  const finish = (value: string): void => {
    if (name !== undefined && value !== '') {
      for (const known of [parameters, ofScheme]) if (!known.has(name)) known.set(name, value);
    }
    name = undefined;
    parts = [];
  };
  for (const lexeme of lexAuthChallenge(text)) {
    const isSpace = lexeme.trim() === '';
    if (name === undefined) {
      if (lexeme === '=' && word !== undefined && NAME.test(word)) {
        name = word.toLowerCase();
        word = undefined;
      } else if (!isSpace) begin(lexeme);
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
  begin(undefined);
  return { parameters, schemes };
}

function splitWords(text = ''): readonly string[] {
  return text.split(' ').filter((word) => word !== '');
}
