/** TLS certificates for connections to servers: trusted authorities and the client certificate. */
import { createSecureContext, type SecureContext } from 'node:tls';
import { BridgeError } from '../../errors.ts';
import { readSmallFile } from '../../io/bounded-file.ts';

export interface TlsFiles {
  /** Replaces Node's built-in authorities, as curl's --cacert does. */
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
}

/**
 * Returns undefined, for Node's defaults, if no file is given. Throws BridgeError ERR_CONFIG_OPTION when a file cannot
 * be used.
 */
export function readSecureContext({ caFile, certFile, keyFile }: TlsFiles): SecureContext | undefined {
  if (caFile === undefined && certFile === undefined && keyFile === undefined) return undefined;
  const ca = readPem(caFile, '--ca');
  const cert = readPem(certFile, '--client-cert');
  const key = readPem(keyFile, '--client-key');
  try {
    return createSecureContext({ ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
  } catch (cause) {
    const files = [caFile, certFile, keyFile].filter((file) => file !== undefined).join(', ');
    throw new BridgeError('ERR_CONFIG_OPTION', `These files do not make a usable TLS configuration: ${files}.`, {
      cause,
    });
  }
}

function readPem(file: string | undefined, option: string): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readSmallFile(file);
  } catch (cause) {
    throw new BridgeError('ERR_CONFIG_OPTION', `Cannot read the file given with ${option}: ${file}.`, { cause });
  }
}
