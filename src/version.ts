import { readFileSync } from 'node:fs';

/** Both src/ and dist/ lie directly below the package's root. */
const manifest: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The version in package.json. */
export const VERSION: string =
  typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : 'unknown';

/** What servers are told they talk to where it is not a client that says so itself. */
export const CLIENT_INFO = { name: 'mcp-portage', version: VERSION };
