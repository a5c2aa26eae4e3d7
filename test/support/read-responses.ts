/** One response of HTTP/1.1 as it came. */
export interface ReadResponse {
  readonly status: number;
  /** Lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface ReadResponses {
  /** Those that have come completely, in their order, interim ones left out. */
  readonly complete: readonly ReadResponse[];
  /** The head of the one that has begun after them; undefined: none has. */
  readonly begun: ReadResponse | undefined;
  /** What has come after all that, of which no head is complete, or that another protocol goes on with. */
  readonly rest: string;
}

/**
 * Reads what a server has sent on one connection.
 * @param received one character for each byte
 * @param isHead whether the response with this index answers a HEAD, and so has no body
 * @param limit how many are read; what comes after them is the rest
 */
export function readResponses(
  received: string,
  isHead: (index: number) => boolean,
  limit = Number.POSITIVE_INFINITY,
): ReadResponses {
  const complete: ReadResponse[] = [];
  let rest = received;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0 || complete.length >= limit) return { complete, begun: undefined, rest };
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const match = /^HTTP\/1\.1 (\d{3})(?: |$)/.exec(first);
    if (match === null) throw new Error(`this is no head of a response: ${JSON.stringify(rest.slice(0, 200))}`);
    const status = Number(match[1]);
    const headers = new Map(lines.map((line) => splitLine(line)));
    const after = rest.slice(end + 4);
    if (status === 101)
      return { complete: [...complete, { status, headers, body: '' }], begun: undefined, rest: after };
    if (status < 200) {
      rest = after;
      continue;
    }
    const hasBody = !isHead(complete.length) && status !== 204 && status !== 304;
    const body = hasBody ? readBody(headers, after) : { text: '', length: 0 };
    if (body === undefined) return { complete, begun: { status, headers, body: '' }, rest: after };
    complete.push({ status, headers, body: body.text });
    rest = after.slice(body.length);
  }
}

function splitLine(line: string): [name: string, value: string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** Undefined: it is not complete. */
function readBody(headers: ReadResponse['headers'], text: string): { text: string; length: number } | undefined {
  if (headers.get('transfer-encoding') === 'chunked') return readChunks(text);
  // Without a length it ends with its connection; the servers here say none only where there is no body.
  const length = Number(headers.get('content-length') ?? 0);
  return text.length < length ? undefined : { text: text.slice(0, length), length };
}

function readChunks(text: string): { text: string; length: number } | undefined {
  let body = '';
  let at = 0;
  for (;;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size + 2;
    if (text.length < end) return undefined;
    if (size === 0) return { text: body, length: end };
    body += text.slice(lineEnd + 2, end - 2);
    at = end;
  }
}
