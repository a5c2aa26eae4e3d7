/** The names that MCP over MQTT makes its topics of. */

/**
 * Longest id of a client or server. The specification sets no limit, but servers on microcontrollers build their topics in
 * buffers of this size.
 */
const MAX_ID_BYTES = 128;
/** Longest server name. Topics may have 64 KiB, and with both ids these still fit into what is read of a header. */
export const MAX_NAME_BYTES = 1024;

/** Characters that no topic name may contain, or that would forge lines in logs. [MQTT 5 1.5.4, 4.7.1] */
const FORBIDDEN = /[+#\p{Cc}\p{Zl}\p{Zp}\uFFFD\uFFFE\uFFFF]/u;

/** Returns true for text that can be one level of a topic, as ids of clients and servers are. */
export function isMqttId(text: string): boolean {
  return text !== '' && !text.includes('/') && !FORBIDDEN.test(text) && Buffer.byteLength(text) <= MAX_ID_BYTES;
}

/** Returns true for a server name: levels of a topic, none of them empty. */
export function isServerName(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_NAME_BYTES && !FORBIDDEN.test(text) && !text.split('/').includes('');
}

/** Returns true if a topic filter with wildcards includes this topic. [MQTT 5 4.7] */
export function filterMatches(filter: string, topic: string): boolean {
  const levels = topic.split('/');
  const wanted = filter.split('/');
  for (const [index, level] of wanted.entries()) {
    if (level === '#') return index === wanted.length - 1;
    if (index >= levels.length || (level !== '+' && level !== levels[index])) return false;
  }
  return wanted.length === levels.length;
}
