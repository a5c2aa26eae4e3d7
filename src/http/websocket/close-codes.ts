import { type BridgeError, SHUTTING_DOWN } from '../../errors.ts';

/** Why a connection is closed, as its peer is told. [RFC 6455 7.4.1, and the registry it opened] */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  /** Never sent: the peer gave no code. */
  noStatus: 1005,
  /** Never sent: the connection broke without a word. */
  abnormal: 1006,
  invalidText: 1007,
  policyViolation: 1008,
  tooBig: 1009,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const;

/** The words of a close frame have at most 125 bytes, two of which are the code. [RFC 6455 5.5] */
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
 * The code for a conversation that ends with this error, which is the fault of the bridge or of the server behind it unless
 * the error says otherwise. A session that is closed while the bridge goes on can be opened again at once.
 */
export function closeCodeOf(error: BridgeError): number {
  if (error === SHUTTING_DOWN) return CLOSE_CODES.goingAway;
  return BY_ERROR[error.code] ?? CLOSE_CODES.internalError;
}

/** As much of the words as a close frame can hold, whole characters only. */
export function fitReason(words: string): string {
  const bytes = Buffer.from(words);
  if (bytes.length <= MAX_REASON_BYTES) return words;
  // The bytes of a cut character decode to replacement characters at the end.
  return `${bytes.toString('utf8', 0, MAX_REASON_BYTES - 3).replace(/\uFFFD+$/, '')}…`;
}
