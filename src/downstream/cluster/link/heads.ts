/** Heads of requests and responses as they pass on a link: lists of strings in JSON, which is what Node reads fastest. */

/** A request that is passed on, but for its body. */
export interface PassedHead {
  readonly method: string;
  /** With its query. */
  readonly target: string;
  /** The name of the caller, as the replica that the request came to has found out. */
  readonly principal: string;
  /** Names in lower case and values in turn. */
  readonly headers: readonly string[];
}

export interface ReturnedHead {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

export function encodePassedHead({ method, target, principal, headers }: PassedHead): Buffer {
  return Buffer.from(JSON.stringify([method, target, principal, ...headers]));
}

/** Undefined: it is none. */
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

/** Undefined: it is none. */
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
