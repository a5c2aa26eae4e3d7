/**
 * Names under which a body is sent as it is. Some senders leave the header empty, or take it for that of the character
 * set; were such a body packed after all, it would be read as what it is not and refused for that.
 */
const UNPACKED: ReadonlySet<string> = new Set(['', 'identity', 'utf-8', 'utf8']);

/** What has to be undone before a body can be read, by its Content-Encoding; undefined: nothing. [RFC 9110 8.4] */
export function packingOf(contentEncoding: string | undefined): string | undefined {
  return contentEncoding === undefined || UNPACKED.has(contentEncoding.toLowerCase()) ? undefined : contentEncoding;
}
