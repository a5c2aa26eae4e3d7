/** Parses where the password for a broker is. */
import type { Explained, Parsed, ReadingContext } from '../../options/value-type.ts';
import { parseKeySource } from '../listener/auth-value.ts';

/** The place of a password, or the password itself, which only a configuration file may contain. */
export interface PasswordPlace {
  readonly kind: 'env' | 'file' | 'here';
  readonly place: string;
}

export function parsePasswordPlace(
  text: string,
  context: Pick<ReadingContext, 'resolvePath' | 'nameOf'>,
): Parsed<PasswordPlace> | Explained {
  const source = parseKeySource(text, context);
  if (source.ok) return source;
  const named = context.nameOf('password');
  const example = named.startsWith('--') ? `${named} env:MQTT_PASSWORD` : `${named}: 'env:MQTT_PASSWORD'`;
  return {
    ok: false,
    problem: `write where the password is, env:NAME or file:/path, and not the password itself, which others could read: set a variable to it, as by export MQTT_PASSWORD=…, and write ${example}`,
  };
}
