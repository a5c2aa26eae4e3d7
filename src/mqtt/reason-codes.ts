/** What the reason codes of MQTT 5 mean. [MQTT 5 2.4] */

export const REASONS = {
  normal: 0x00,
  withWill: 0x04,
  noMatchingSubscribers: 0x10,
  malformed: 0x81,
  protocolError: 0x82,
  unsupportedVersion: 0x84,
  notAuthorized: 0x87,
  tooLarge: 0x95,
} as const;

/** Codes from here on are failures. */
export const FIRST_FAILURE = 0x80;

const NAMES: ReadonlyMap<number, string> = new Map([
  [0x00, 'normal disconnection'],
  [0x80, 'unspecified error'],
  [0x81, 'malformed packet'],
  [0x82, 'protocol error'],
  [0x83, 'error of this broker'],
  [0x84, 'unsupported protocol version'],
  [0x85, 'client identifier not valid'],
  [0x86, 'bad user name or password'],
  [0x87, 'not authorized'],
  [0x88, 'server unavailable'],
  [0x89, 'server busy'],
  [0x8a, 'banned'],
  [0x8b, 'server shutting down'],
  [0x8c, 'bad authentication method'],
  [0x8d, 'keep-alive timeout'],
  [0x8e, 'session taken over'],
  [0x8f, 'topic filter invalid'],
  [0x90, 'topic name invalid'],
  [0x93, 'receive maximum exceeded'],
  [0x95, 'packet too large'],
  [0x96, 'message rate too high'],
  [0x97, 'quota exceeded'],
  [0x98, 'administrative action'],
  [0x99, 'payload format invalid'],
  [0x9a, 'retain not supported'],
  [0x9b, 'QoS not supported'],
  [0x9c, 'use another server'],
  [0x9d, 'server moved'],
  [0x9f, 'connection rate exceeded'],
  [0xa0, 'maximum connect time'],
  [0xa2, 'wildcard subscriptions not supported'],
]);

/** Codes with which a broker refuses the credentials, and not only this attempt. */
const CREDENTIALS: ReadonlySet<number> = new Set([0x86, 0x87, 0x8a, 0x8c]);

export function isAboutCredentials(code: number): boolean {
  return CREDENTIALS.has(code);
}

/** `not authorized (135)` */
export function describeReason(code: number): string {
  const name = NAMES.get(code);
  return name === undefined ? `reason ${code}` : `${name} (${code})`;
}
