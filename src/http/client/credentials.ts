/** The credentials that a server is shown: how they are renewed, a token in a file, and what a refusal says of them. */
import type { IncomingHttpHeaders } from 'node:http';
import { BridgeError } from '../../errors.ts';
import { ChangingFile } from '../changing-file.ts';

/** The credentials that the server is shown. */
export interface Credentials {
  /**
   * The headers for one attempt of a request, which leaves now; undefined: none. Called again for each repetition and each
   * redirect. Throws BridgeError ERR_UPSTREAM_AUTH.
   */
  show(method: string, url: URL): CredentialHeaders | undefined;
  /** Undefined: they are not renewed by the bridge. */
  readonly renewal: CredentialRenewal | undefined;
  /** Ends renewals. May be called twice. */
  close(): void;
}

export interface CredentialHeaders {
  readonly authorization: string;
  /** Proves, for this attempt alone, that its sender has the key that the token is bound to. Absent: the token is bound to none. */
  readonly dpop?: string;
}

/** Credentials that the bridge gets by itself. Every request asks, so the usual answers cost no promise. */
export interface CredentialRenewal {
  /**
   * The time, by the clock of the bridge, at which a renewal was last under way: now while there is one. Undefined: there
   * has been none. A renewal may take as long as a user needs, and time limits for the server do not run meanwhile.
   */
  readonly lastUnderWayMs: number | undefined;
  /**
   * Called before a request leaves. Settles when better credentials are there or cannot be had; never rejects.
   * Undefined: there is nothing to wait for.
   */
  beforeRequest(): Promise<void> | undefined;
  /** The server at this URL has taken a request with this value of `Authorization`. */
  accepted(authorization: string, url: URL, headers: IncomingHttpHeaders): void;
  /**
   * Called with the first refusal of each request. Returns true if the proof lacked only the nonce that comes with the
   * refusal, so that the request can be sent again at once.
   */
  takesNonce(refusal: CredentialRefusal): boolean;
  /** The server has refused a request. Undefined: nothing can be done about it. Never rejects. */
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
  /** Where the refusal came from; undefined: from a proxy, or the connection is gone. */
  readonly peerAddress: string | undefined;
  /** Shows the user something that the request waits for; undefined: there is no way to. */
  readonly ask?: AskUser | undefined;
}

/** A page that the user has to open before a request can be served. */
export interface UserPrompt {
  /** Not used before, and not to be guessed. */
  readonly id: string;
  readonly message: string;
  readonly url: URL;
  /** Resolves when there is nothing to do there any more. */
  readonly over: Promise<'logged-in' | 'ended'>;
  /** What a call is told that does not wait for the user. */
  readonly error: BridgeError;
}

/** `unshown`: the client has not shown it, for whatever reason. */
export type UserAnswer = 'accepted' | 'declined' | 'unshown';

/** Returns what the user decides; undefined: the user cannot be asked in this request. */
export type AskUser = (prompt: UserPrompt) => Promise<UserAnswer> | undefined;

export type RenewalOutcome =
  /** There are other credentials now, and the request is worth sending again. */
  | { readonly kind: 'renewed' }
  /** The server offers no way to get any, so its refusal stands. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed'; readonly error: BridgeError };

// ---- Bearer tokens

/** [RFC 6750 2.1] b64token; also keeps line breaks and whatever else is not a token out of the header. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Common servers take 8 to 16 KiB of headers, so a longer token reaches nobody; it would be sent with every request. */
export const MAX_TOKEN_LENGTH = 16 * 1024;

/** Could this be sent as a bearer token? */
export function isBearerToken(text: string): boolean {
  return findTokenFault(text) === undefined;
}

/** Why this is no bearer token, as the end of a sentence that does not show it; undefined: it is one. */
export function findTokenFault(token: string): string | undefined {
  if (token === '') return 'is empty';
  if (token.length > MAX_TOKEN_LENGTH) {
    return `has ${token.length} characters, more than the ${MAX_TOKEN_LENGTH} that a bearer token may have`;
  }
  return TOKEN.test(token) ? undefined : 'holds something that is no bearer token';
}

/** A token in a file that somebody else renews. Errors name the file, never what is in it. */
export class BearerTokenFile implements Credentials {
  readonly renewal = undefined;
  readonly #file: ChangingFile<string>;

  constructor(path: string) {
    this.#file = new ChangingFile(path, (text) => text.trim());
  }

  /** Looks at the file each time (microseconds) and reads it when it has changed. Throws ERR_UPSTREAM_AUTH. */
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
  /** Undefined: the server does not ask for a token that is bound to a key. */
  readonly dpop: DpopChallenge | undefined;
}

/** [RFC 9449 7.1] */
export interface DpopChallenge {
  /** True: the server takes no bearer tokens. */
  readonly isOnly: boolean;
  /** The algorithms of proofs that the server takes; undefined: it does not say. */
  readonly algorithms: readonly string[] | undefined;
  readonly error: string | undefined;
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

/** Reads `WWW-Authenticate`. Several challenges are read as one, but for DPoP: only one of them names metadata. */
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

interface Challenges {
  /** Of all challenges, by name in lower case; of a name that comes twice the first one counts. */
  readonly parameters: ReadonlyMap<string, string>;
  /** The parameters of each scheme, by its name in lower case. */
  readonly schemes: ReadonlyMap<string, ReadonlyMap<string, string>>;
}

function readChallenges(text: string): Challenges {
  const parameters = new Map<string, string>();
  const schemes = new Map<string, Map<string, string>>();
  let ofScheme = new Map<string, string>();
  /** The latest word: the name of a parameter if `=` comes next, else that of a scheme. */
  let word: string | undefined;
  /** Name and value of the parameter that is being read; an unquoted value may come in several parts. */
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
