import type { IncomingMessage } from 'node:http';
import type { MappedHeader } from '../../config.ts';
import { BridgeError } from '../../errors.ts';

/** Enough for names, groups and settings; environments are small on some systems. */
const MAX_VALUE_LENGTH = 1024;
const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * The variables a request's headers come to; what is absent or empty sets none. Several of one name are refused: a
 * client could send one beside that of a proxy, and it would be anybody's guess whose counts.
 */
export function mapHeaders(
  request: IncomingMessage,
  mapped: readonly MappedHeader[],
): Readonly<Record<string, string>> | BridgeError {
  const environment: Record<string, string> = {};
  for (const { header, variable } of mapped) {
    const values = request.headersDistinct[header] ?? [];
    if (values.length > 1) return refuse(header, 'once, and it came more than once');
    const [value = ''] = values;
    if (value.length > MAX_VALUE_LENGTH) return refuse(header, `at most ${MAX_VALUE_LENGTH} characters`);
    if (!PRINTABLE.test(value)) return refuse(header, 'printable ASCII');
    if (value !== '') environment[variable] = value;
  }
  return environment;
}

function refuse(header: string, expected: string): BridgeError {
  return new BridgeError('ERR_HTTP_HEADER', `The header ${header} is used here and must be ${expected}.`);
}
