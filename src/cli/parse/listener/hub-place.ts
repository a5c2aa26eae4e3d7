/** The URL of a hub as users write it: in place, or where it stands, since it may contain a key. */
import type { Parsed, ReadingContext } from '../../options/value-type.ts';

export interface HubPlace {
  readonly kind: 'here' | 'env' | 'file';
  /** The URL, the name of the variable, or the absolute path of the file. */
  readonly text: string;
}

export const EXPECTED_HUB =
  'the URL of a WebSocket or of a server name at a broker, which begins with wss://, ws://, mqtts:// or mqtt://, or where it stands: env:NAME or file:PATH';

export function parseHubPlace(text: string, { resolvePath }: Pick<ReadingContext, 'resolvePath'>): Parsed<HubPlace> {
  const [, kind, place = ''] = /^(env|file):(?!\/\/)(.+)$/s.exec(text) ?? [];
  if (kind === 'file') return { ok: true, value: { kind, text: resolvePath(place) } };
  if (kind === 'env') return { ok: true, value: { kind, text: place } };
  return text === '' ? { ok: false, expected: EXPECTED_HUB } : { ok: true, value: { kind: 'here', text } };
}
