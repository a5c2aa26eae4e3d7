/** The user of a client in scenarios about authorization: what they give the bridge, and the browser they have. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BROWSER } from '../../support/browser-command.ts';
import { CONTEXT } from './scenarios.ts';

/** The one document the suite's authorization server takes; it need not exist. */
const CLIENT_DOCUMENT = 'https://conformance-test.local/client-metadata.json';

export interface User {
  readonly options: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** @param folder empty, and gone afterward: nobody has logged in before */
export function createUser(scenario: string, folder: string): User {
  const { client_id: id, client_secret: secret, private_key_pem: key } = CONTEXT;
  const { idp_issuer: idpIssuer = '', idp_client_id: idpClient = '', idp_id_token: idToken } = CONTEXT;
  const options = scenario === 'auth/basic-cimd' ? ['--oauth-client-document', CLIENT_DOCUMENT] : [];
  if (id !== undefined) options.push('--oauth-client-id', id);
  if (scenario.startsWith('auth/client-credentials')) options.push('--oauth-grant', 'client-credentials');
  if (scenario === 'auth/wif-jwt-bearer') options.push('--oauth-grant', 'jwt-bearer');
  if (idToken !== undefined) options.push('--oauth-idp-issuer', idpIssuer, '--oauth-idp-client-id', idpClient);
  const files = { 'oauth-client-key': key, 'oauth-assertion-file': idToken ?? CONTEXT.valid_jwt };
  for (const [option, content] of Object.entries(files)) {
    if (content === undefined) continue;
    writeFileSync(join(folder, option), content);
    options.push(`--${option}`, join(folder, option));
  }
  return {
    options,
    env: {
      BROWSER,
      MCP_PORTAGE_STATE_DIR: folder,
      ...(secret !== undefined && { MCP_PORTAGE_OAUTH_CLIENT_SECRET: secret }),
    },
  };
}
