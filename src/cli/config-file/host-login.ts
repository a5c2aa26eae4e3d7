/** Translates the login settings of a host's entry into our own options. */
import type { OptionName } from '../options/option-table.ts';
import { parseCallback } from '../parse/servers/login-value.ts';
import type { ConfigNode, ObjectNode } from './config-tree.ts';
import type { TextsOfKey } from './entry-values.ts';

/** Claude Code and VS Code have login settings under `oauth`, Cursor under `auth`, and Codex in the entry itself. */
const PLACES = ['oauth', 'auth'] as const;
const CLIENT_IDS = ['clientId', 'client_id', 'CLIENT_ID'] as const;

/**
 * Reads the login settings. Values of a wrong type, or usable by the host alone, are ignored: they were written for the
 * host.
 */
export function readHostLogin(entry: ObjectNode): ReadonlyMap<OptionName, TextsOfKey> {
  const found = new Map<OptionName, TextsOfKey>();
  const add = (name: OptionName, key: string, texts: readonly string[]): void => {
    if (texts.length > 0 && !found.has(name)) found.set(name, { key, texts });
  };
  for (const key of PLACES) {
    const login = entry.members.get(key);
    if (login?.kind !== 'object') continue;
    for (const name of CLIENT_IDS) add('oauthClientId', key, textsIn(login.members.get(name)));
    add('oauthScope', key, scopesIn(login.members.get('scopes')));
    add('oauthCallback', key, callbackOf(login));
  }
  add('oauthClientId', 'oauth_client_id', textsIn(entry.members.get('oauth_client_id')));
  add('oauthScope', 'scopes', scopesIn(entry.members.get('scopes')));
  return found;
}

/**
 * Returns the callback URL. Hosts that set only a port use the path `/callback`. A redirect URI on another machine
 * leads to the host, so it is ignored.
 */
function callbackOf(login: ObjectNode): readonly string[] {
  const port = login.members.get('callbackPort');
  const [uri = port?.kind === 'number' ? `http://localhost:${port.value}/callback` : ''] = textsIn(
    login.members.get('redirectUri'),
  );
  return parseCallback(uri).ok ? [uri] : [];
}

function scopesIn(node: ConfigNode | undefined): readonly string[] {
  const texts = node?.kind === 'list' ? node.items.flatMap(textsIn) : textsIn(node);
  return texts.flatMap((text) => text.split(/[\s,]+/)).filter((scope) => scope !== '');
}

/** Returns the text, unless it has variables, which only the host can fill in. */
function textsIn(node: ConfigNode | undefined): readonly string[] {
  return node?.kind === 'text' && node.value !== '' && !node.value.includes('${') ? [node.value] : [];
}
