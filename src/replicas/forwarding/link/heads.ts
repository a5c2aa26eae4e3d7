/** Heads of requests and responses on a link, encoded as JSON arrays of strings, which is what Node parses fastest. */

/** A forwarded request without its body. */
export interface PassedHead {
  readonly method: string;
  /** Path with query. */
  readonly target: string;
  /** Name of the caller, as authenticated by the replica that received the request. */
  readonly principal: string;
  /** Alternating lower-case names and values. */
  readonly headers: readonly string[];
}

export interface ReturnedHead {
  readonly status: number;
  /** Alternating names and values. */
  readonly headers: readonly string[];
}

export function encodePassedHead({ method, target, principal, headers }: PassedHead): Buffer {
  return Buffer.from(JSON.stringify([method, target, principal, ...headers]));
}

/** Returns undefined if the bytes are not a request's head. */
export function decodePassedHead(bytes: Buffer): PassedHead | undefined {
  const parts = readStrings(bytes);
  const [method, target, principal, ...headers] = parts ?? [];
  if (method === undefined || target === undefined || principal === undefined) return undefined;
  return headers.length % 2 === 0 ? { method, target, principal, headers } : undefined;
}

export function encodeReturnedHead({ status, headers }: ReturnedHead): Buffer {
  return Buffer.from(JSON.stringify([String(status), ...headers]));
}

const STATUS = /^[1-9]\d\d$/;

/** Returns undefined if the bytes are not a response's head. */
export function decodeReturnedHead(bytes: Buffer): ReturnedHead | undefined {
  const [status, ...headers] = readStrings(bytes) ?? [];
  if (status === undefined || !STATUS.test(status)) return undefined;
  return headers.length % 2 === 0 ? { status: Number(status), headers } : undefined;
}

function readStrings(bytes: Buffer): readonly string[] | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return Array.isArray(value) && value.every((each) => typeof each === 'string') ? value : undefined;
  } catch {
    return undefined;
  }
}
