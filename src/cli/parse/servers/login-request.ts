import type { RemoteConfig } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-table.ts';
import type { Environment } from './child-environment.ts';
import type { FoundFile } from './headers.ts';

export interface LoginRequest {
  readonly given: GivenOptions;
  readonly verb: BridgeVerb;
  readonly env: Environment;
  readonly platform: NodeJS.Platform;
  /** Throws the system's error if the file cannot be read. */
  readonly readFile: (path: string) => FoundFile;
  /** Throws for a user without a home folder. The default asks the operating system. */
  readonly homeFolder?: (() => string) | undefined;
  /** False for a server at a local socket, whose address no authorization server could know. */
  readonly isOverNetwork: boolean;
  /** Configured headers and token, which may already authenticate the user to the server. */
  readonly remote: Pick<RemoteConfig, 'headers' | 'bearerTokenFile'>;
}

export function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
