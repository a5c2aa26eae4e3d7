/** Parses the account at a broker. */
import type { BrokerAccount, PasswordSource } from '../../../config/remote.ts';
import { BridgeError } from '../../../errors.ts';
import type { GivenOptions } from '../../options/given-options.ts';
import type { PasswordPlace } from './account-value.ts';
import type { Environment } from './child-environment.ts';

/** Throws ERR_CONFIG_OPTION if the variable is not set. A file is not read here. */
export function parseAccount(given: GivenOptions, env: Environment): BrokerAccount {
  const written = given.get('password');
  return { user: given.get('user'), password: written && findPassword(written, given, env) };
}

function findPassword({ kind, place }: PasswordPlace, given: GivenOptions, env: Environment): PasswordSource {
  if (kind === 'file') return { kind, file: place };
  const password = kind === 'here' ? place : env[place];
  if (password) return { kind: 'value', password };
  const problem = `the variable ${place} is not set; set it to the password first, as by export ${place}=…`;
  throw new BridgeError('ERR_CONFIG_OPTION', `${given.placeOf('password')}: ${problem}.`);
}
