import type { RemoteConfig } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { BridgeVerb } from '../../options/option-spec.ts';
import type { Environment } from './child-environment.ts';
import type { FoundFile } from './headers.ts';

export interface LoginRequest {
  readonly given: GivenOptions;
  readonly verb: BridgeVerb;
  readonly env: Environment;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  /** Throws what the system says when it cannot be read. */
  readonly readFile: (path: string) => FoundFile;
  /** Throws for a user without one; default: what the system says. */
  readonly homeFolder?: (() => string) | undefined;
  /** A server at a socket of this machine has no address that an authorization server could know. */
  readonly isOverNetwork: boolean;
  /** What the server is shown already. */
  readonly remote: Pick<RemoteConfig, 'headers' | 'bearerTokenFile'>;
}

export function excluded(message: string): BridgeError {
  return new BridgeError('ERR_CONFIG_COMBINATION', message);
}
