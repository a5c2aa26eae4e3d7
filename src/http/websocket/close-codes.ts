import { type BridgeError, SHUTTING_DOWN } from '../../errors.ts';

/** Status codes of close frames, which tell the peer why the connection ends. [RFC 6455 7.4.1 and the IANA registry] */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  /** Never sent; means that the peer gave no code. */
  noStatus: 1005,
  /** Never sent; means that the connection broke without a close frame. */
  abnormal: 1006,
  invalidText: 1007,
  policyViolation: 1008,
  tooBig: 1009,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const;

/** Limit for the reason: a close frame has at most 125 bytes, two of which are the code. [RFC 6455 5.5] */
export const MAX_REASON_BYTES = 123;

const BY_ERROR: Partial<Record<BridgeError['code'], number>> = {
  ERR_SESSION_CLOSED: CLOSE_CODES.serviceRestart,
  ERR_AUTH_TOKEN: CLOSE_CODES.policyViolation,
  ERR_AUTH_SCOPE: CLOSE_CODES.policyViolation,
  ERR_SESSION_LIMIT: CLOSE_CODES.tryAgainLater,
  ERR_SESSION_BUSY: CLOSE_CODES.tryAgainLater,
  ERR_UPSTREAM_STARTING: CLOSE_CODES.tryAgainLater,
  ERR_UPSTREAM_CRASH_LOOP: CLOSE_CODES.tryAgainLater,
  ERR_WIRE_FRAME_TOO_LARGE: CLOSE_CODES.tooBig,
  ERR_WIRE_PARSE: CLOSE_CODES.invalidText,
};

/**
 * Returns the code for a connection that ends with this error. Unless the error says otherwise, the bridge or the
 * server behind it is at fault. A session that was closed while the bridge keeps running can be opened again at once.
 */
export function closeCodeOf(error: BridgeError): number {
  if (error === SHUTTING_DOWN) return CLOSE_CODES.goingAway;
  return BY_ERROR[error.code] ?? CLOSE_CODES.internalError;
}

/** Truncates a reason to the limit, without splitting characters. */
export function fitReason(words: string): string {
  const bytes = Buffer.from(words);
  if (bytes.length <= MAX_REASON_BYTES) return words;
  // The bytes of a split character decode to replacement characters at the end.
  return `${bytes.toString('utf8', 0, MAX_REASON_BYTES - 3).replace(/\uFFFD+$/, '')}…`;
}
