/**
 * The only error class, and the table of what each code means to its three audiences: the JSON-RPC peer, the HTTP
 * client and the shell. Errors are converted to these forms only at the edges (a transport, the command line). Every
 * code has a paragraph in docs/reference/errors.md.
 */
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  SESSION_ERROR,
  SESSION_NOT_FOUND,
} from './mcp/vocabulary/rpc-codes.ts';
import { printableLines } from './printable.ts';

/** A code's form for each of the three audiences; undefined if the code never reaches that audience. */
export interface ErrorAudiences {
  /** JSON-RPC error code. */
  readonly rpc: number | undefined;
  /** HTTP status, used only if no response has started. */
  readonly http: number | undefined;
  /** Process exit code (sysexits.h where one fits). */
  readonly exit: number | undefined;
}

const codes = {
  ERR_CONFIG_OPTION: { rpc: undefined, http: undefined, exit: 2 },
  ERR_CONFIG_COMBINATION: { rpc: undefined, http: undefined, exit: 2 },
  ERR_CONFIG_FILE: { rpc: undefined, http: undefined, exit: 2 },
  ERR_CONFIG_PINS: { rpc: undefined, http: undefined, exit: 2 },
  ERR_CONFIG_RECORDING: { rpc: undefined, http: undefined, exit: 2 },
  ERR_CONFIG_LISTEN: { rpc: undefined, http: undefined, exit: 69 },
  ERR_WIRE_PARSE: { rpc: PARSE_ERROR, http: 400, exit: undefined },
  ERR_WIRE_MESSAGE: { rpc: INVALID_REQUEST, http: 400, exit: undefined },
  ERR_WIRE_FRAME_TOO_LARGE: { rpc: INVALID_REQUEST, http: 413, exit: undefined },
  ERR_WIRE_BATCH: { rpc: INVALID_REQUEST, http: 400, exit: undefined },
  ERR_HTTP_HOST: { rpc: SESSION_ERROR, http: 403, exit: undefined },
  ERR_HTTP_ORIGIN: { rpc: SESSION_ERROR, http: 403, exit: undefined },
  ERR_HTTP_PATH: { rpc: SESSION_ERROR, http: 404, exit: undefined },
  ERR_HTTP_GONE: { rpc: SESSION_ERROR, http: 410, exit: undefined },
  ERR_HTTP_METHOD: { rpc: SESSION_ERROR, http: 405, exit: undefined },
  ERR_HTTP_ADDRESS: { rpc: SESSION_ERROR, http: 403, exit: undefined },
  ERR_HTTP_BODY: { rpc: INTERNAL_ERROR, http: 500, exit: undefined },
  ERR_HTTP_ACCEPT: { rpc: SESSION_ERROR, http: 406, exit: undefined },
  ERR_HTTP_CONTENT_TYPE: { rpc: SESSION_ERROR, http: 415, exit: undefined },
  ERR_HTTP_RESUME: { rpc: SESSION_ERROR, http: 400, exit: undefined },
  ERR_HTTP_HEADER: { rpc: SESSION_ERROR, http: 400, exit: undefined },
  ERR_HTTP_UPGRADE: { rpc: SESSION_ERROR, http: 426, exit: undefined },
  ERR_AUTH_REQUIRED: { rpc: SESSION_ERROR, http: 401, exit: undefined },
  ERR_AUTH_REQUEST: { rpc: SESSION_ERROR, http: 400, exit: undefined },
  ERR_AUTH_TOKEN: { rpc: SESSION_ERROR, http: 401, exit: undefined },
  ERR_AUTH_SCOPE: { rpc: SESSION_ERROR, http: 403, exit: undefined },
  ERR_AUTH_UNAVAILABLE: { rpc: SESSION_ERROR, http: 503, exit: undefined },
  ERR_UNSUPPORTED_REVISION: { rpc: SESSION_ERROR, http: 400, exit: undefined },
  ERR_SESSION_MISSING: { rpc: SESSION_ERROR, http: 400, exit: undefined },
  ERR_SESSION_UNKNOWN: { rpc: SESSION_NOT_FOUND, http: 404, exit: undefined },
  ERR_SESSION_LIMIT: { rpc: SESSION_ERROR, http: 503, exit: undefined },
  ERR_SESSION_CLOSED: { rpc: SESSION_ERROR, http: 503, exit: undefined },
  ERR_SESSION_BUSY: { rpc: SESSION_ERROR, http: 503, exit: undefined },
  ERR_UPSTREAM_SPAWN: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_EXITED: { rpc: INTERNAL_ERROR, http: 502, exit: 70 },
  ERR_UPSTREAM_HUNG: { rpc: INTERNAL_ERROR, http: 502, exit: undefined },
  ERR_UPSTREAM_CLOSED: { rpc: INTERNAL_ERROR, http: 502, exit: 70 },
  ERR_UPSTREAM_CRASH_LOOP: { rpc: INTERNAL_ERROR, http: 503, exit: 70 },
  ERR_UPSTREAM_RESTARTED: { rpc: INTERNAL_ERROR, http: 503, exit: undefined },
  ERR_UPSTREAM_STARTING: { rpc: INTERNAL_ERROR, http: 503, exit: undefined },
  ERR_UPSTREAM_TIMEOUT: { rpc: INTERNAL_ERROR, http: 504, exit: undefined },
  ERR_UPSTREAM_PROTOCOL: { rpc: INTERNAL_ERROR, http: 502, exit: undefined },
  ERR_UPSTREAM_CONNECT: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_TOO_LARGE: { rpc: INTERNAL_ERROR, http: 502, exit: undefined },
  ERR_UPSTREAM_UNREADABLE: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_HTTP: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_AUTH: { rpc: INTERNAL_ERROR, http: 502, exit: 77 },
  ERR_UPSTREAM_DELIVERY: { rpc: INTERNAL_ERROR, http: 502, exit: undefined },
  ERR_UPSTREAM_TOOL: { rpc: INVALID_PARAMS, http: undefined, exit: undefined },
  ERR_UPSTREAM_HEADERS: { rpc: INVALID_PARAMS, http: undefined, exit: undefined },
  ERR_UPSTREAM_DETECT: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_REVISION: { rpc: INTERNAL_ERROR, http: 502, exit: 69 },
  ERR_UPSTREAM_LOOP: { rpc: SESSION_ERROR, http: 508, exit: undefined },
  ERR_PIN_DIFFERS: { rpc: INVALID_PARAMS, http: undefined, exit: undefined },
  ERR_PIN_UNSURE: { rpc: INTERNAL_ERROR, http: undefined, exit: undefined },
  ERR_REPLAY_METHOD: { rpc: METHOD_NOT_FOUND, http: undefined, exit: undefined },
  ERR_REPLAY_PARAMS: { rpc: INVALID_PARAMS, http: undefined, exit: undefined },
  ERR_REPLAY_ANSWER: { rpc: INTERNAL_ERROR, http: undefined, exit: undefined },
  ERR_SHARED_AMBIGUOUS: { rpc: INTERNAL_ERROR, http: undefined, exit: undefined },
  ERR_SHARED_METHOD: { rpc: METHOD_NOT_FOUND, http: undefined, exit: undefined },
  ERR_CLIENT_NO_STREAM: { rpc: INTERNAL_ERROR, http: undefined, exit: undefined },
  ERR_CLIENT_CAPABILITY: { rpc: METHOD_NOT_FOUND, http: undefined, exit: undefined },
  ERR_CLIENT_INPUT: { rpc: INTERNAL_ERROR, http: undefined, exit: undefined },
  ERR_AUDIT_UNAVAILABLE: { rpc: INTERNAL_ERROR, http: 503, exit: undefined },
  ERR_STORE_UNAVAILABLE: { rpc: INTERNAL_ERROR, http: 503, exit: 69 },
  ERR_STORE_UNREADABLE: { rpc: INTERNAL_ERROR, http: 503, exit: 70 },
  ERR_CLUSTER_OWNER: { rpc: INTERNAL_ERROR, http: 503, exit: undefined },
  ERR_CLUSTER_TURN: { rpc: INTERNAL_ERROR, http: 503, exit: undefined },
  ERR_CLUSTER_HOP: { rpc: SESSION_ERROR, http: 403, exit: undefined },
  ERR_INTERNAL: { rpc: INTERNAL_ERROR, http: 500, exit: 70 },
} as const satisfies Record<string, ErrorAudiences>;

export type ErrorCode = keyof typeof codes;

/** All codes with their audiences; docs/reference/errors.md is checked against this. */
export const ERROR_CODES: Readonly<Record<ErrorCode, ErrorAudiences>> = codes;

export interface BridgeErrorOptions {
  readonly cause?: unknown;
  /** Goes to the peer as `error.data`; never credentials, payloads or command lines. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** For temporary errors: becomes `Retry-After`. */
  readonly retryAfterMs?: number;
}

/**
 * Messages say what happened and to what, what was expected and received, and what to do about it. Quotations of peers
 * are made printable, because messages end up in logs, on terminals and with other peers.
 */
export class BridgeError extends Error {
  override readonly name = 'BridgeError';
  readonly code: ErrorCode;
  readonly data: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterMs: number | undefined;

  /**
   * Creates the error without a stack trace, which would take most of the time of a rejection and is never shown: the
   * code says what happened. An internal error is passed as `cause` and has its own stack.
   */
  constructor(code: ErrorCode, message: string, options: BridgeErrorOptions = {}) {
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(printableLines(message), options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.data = options.data;
    this.retryAfterMs = options.retryAfterMs;
  }

  get audiences(): ErrorAudiences {
    return codes[this.code];
  }
}

/** Converts any thrown value to a BridgeError. An unknown one counts as a bug of the bridge. */
export function toBridgeError(thrown: unknown): BridgeError {
  if (thrown instanceof BridgeError) return thrown;
  return new BridgeError('ERR_INTERNAL', 'mcp-portage failed internally; please report this with the log above.', {
    cause: thrown,
  });
}

/** Ends a switch over a union: reaching it is a programming error. */
export function assertNever(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}

/** For the sender of an ambiguous message, if the bridge or a server must act on its content. */
export const UNCLEAR = new BridgeError(
  'ERR_WIRE_MESSAGE',
  'This message can be read in several ways: a member occurs twice or in another case, the name of a tool is not a ' +
    'string, or progressToken is neither a string nor a number; send each member once, as the specification spells it.',
);

/** For everything that is still open when the process ends. */
export const SHUTTING_DOWN = new BridgeError('ERR_SESSION_CLOSED', 'mcp-portage is shutting down.');

/** For a client whose server is the bridge itself. */
export const OWN_SERVER = new BridgeError(
  'ERR_UPSTREAM_LOOP',
  'This bridge has called itself: the URL of one of its servers leads back to it, or to another of its replicas. Give it the URL of the MCP server.',
);

/** A hint for servers that have been silent from the start, in addition to other possible reasons. */
export const MAY_BE_FRAMED =
  'Over stdio, it may also wait for a Content-Length header before each message, as servers of the Language Server Protocol do, where MCP has lines.';
